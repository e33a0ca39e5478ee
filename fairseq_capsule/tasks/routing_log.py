"""Means that are logged at validation: sums of batches, and `--log-routing`, the statistics of a model's routing."""

from typing import Any, Dict, Mapping, Sequence

from fairseq.logging import metrics
from torch import Tensor, nn

from fairseq_capsule.inspection import gather_statistics

TOTAL, COUNT = "_total", "_count"


def routing_sums(model: nn.Module, net_input: Mapping[str, Any]) -> Dict[str, Tensor]:
    """Return the statistics of all mechanisms of a model for a batch: `routing_MECHANISM_NAME_total` and `…_count`.

    fairseq adds them over batches and processes.
    """
    statistics = gather_statistics(model, net_input["src_tokens"], net_input["prev_output_tokens"])
    sums = {}
    for mechanism, means in statistics.items():
        for name, mean in means.items():
            sums[f"routing_{mechanism}_{name}{TOTAL}"] = mean.total
            sums[f"routing_{mechanism}_{name}{COUNT}"] = mean.number
    return sums


def log_means(logging_outputs: Sequence[Mapping[str, Any]], prefix: str, digits: int = 4) -> None:
    """Log the mean `NAME` of each `NAME_total` and `NAME_count` in the outputs of batches whose name has the prefix."""
    keys = dict.fromkeys(key for output in logging_outputs for key in output)
    for name in (key.removesuffix(COUNT) for key in keys if key.startswith(prefix) and key.endswith(COUNT)):
        total, count = (sum(output.get(name + part, 0) for output in logging_outputs) for part in (TOTAL, COUNT))
        if count > 0:
            metrics.log_scalar(name, total / count, count, round=digits)
