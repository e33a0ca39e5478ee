"""`--log-routing`: statistics of a model's routing, logged through fairseq's metrics."""

from typing import Any, Dict, Iterable, Mapping

from fairseq.logging import metrics
from torch import Tensor, nn

from fairseq_capsule.inspection import gather_statistics

PREFIX = "routing_"
TOTAL, COUNT = "_total", "_count"


def routing_sums(model: nn.Module, net_input: Mapping[str, Any]) -> Dict[str, Tensor]:
    """Return the statistics of all mechanisms of a model for a batch, as sums.

    fairseq adds the sums over batches and processes.
    """
    statistics = gather_statistics(model, net_input["src_tokens"], net_input["prev_output_tokens"])
    sums = {}
    for mechanism, means in statistics.items():
        for name, mean in means.items():
            sums[f"{PREFIX}{mechanism}_{name}{TOTAL}"] = mean.total
            sums[f"{PREFIX}{mechanism}_{name}{COUNT}"] = mean.number
    return sums


def log_routing(logging_outputs: Iterable[Mapping[str, Any]]) -> None:
    """Log the means `routing_MECHANISM_NAME` from the sums of `routing_sums` in the logging outputs of batches."""
    outputs = list(logging_outputs)
    names = dict.fromkeys(key[: -len(COUNT)] for log in outputs for key in log if _is_count(key))
    for name in names:
        total, count = (sum(log.get(name + part, 0) for log in outputs) for part in (TOTAL, COUNT))
        if count > 0:
            metrics.log_scalar(name, total / count, count, round=4)


def _is_count(key: str) -> bool:
    return key.startswith(PREFIX) and key.endswith(COUNT)
