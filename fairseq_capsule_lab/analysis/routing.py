"""What a trained model routes, as numbers: means over a split of the statistics of mechanisms and of attention."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Sequence

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.inspection import gather_statistics
from fairseq_capsule.inspection.attention import encoder_attention
from fairseq_capsule.inspection.statistics import Statistics, coupling_entropy
from fairseq_capsule_lab.analysis.batches import batches
from fairseq_capsule_lab.analysis.output import Analysis, column, make_analysis


@dataclass(frozen=True)
class RoutingRow:
    system: str = column("system")
    statistic: str = column("statistic")
    value: float = column("mean", digits=4)


def routing_statistics(model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
    """All statistics of a batch: those of `--log-routing`, `MECHANISM_NAME`, and `attention_before`, `attention_after`.

    These are the normalised entropy of the attention of the encoder's last layer, without and with what changes its
    logits.

    Args:
        source: `[B, I]`, padded on either side.
        previous: the tokens that the decoder reads, `[B, T]`, padded on the right.
    """
    per_mechanism = gather_statistics(model, source, previous)
    statistics = {f"{name}_{key}": mean for name, means in per_mechanism.items() for key, mean in means.items()}
    if isinstance(model.encoder, TransformerEncoderBase):
        padding = source.eq(model.encoder.padding_idx)
        last = encoder_attention(model, source)[-1]
        masked = (padding[:, None, None, :] | padding[:, None, :, None]).expand_as(last.after)
        for name, attention in (("before", last.before), ("after", last.after)):
            statistics[f"attention_{name}"] = coupling_entropy(attention.masked_fill(masked, 0), -1, masked)
    return statistics


@torch.no_grad()
def analyze_routing(names: Sequence[str], checkpoints: Sequence[Path], data: Path, split: str) -> Analysis:
    """The means of `routing_statistics` of models over a split, with teacher forcing.

    Raises:
        UserError: a model has no attention and routes nothing; also the errors of `load_with_data` and `batches`.
    """
    rows: List[RoutingRow] = []
    for name, checkpoint in zip(names, checkpoints):
        model, _, task = load_with_data(checkpoint, data)
        sums: Statistics = {}
        for sample in batches(checkpoint, task, split, f"routing {name}"):
            words = sample["net_input"]
            for key, mean in routing_statistics(model, words["src_tokens"], words["prev_output_tokens"]).items():
                sums[key] = sums[key] + mean if key in sums else mean
        if not sums:
            problem = "the model routes nothing and has no attention of an encoder"
            raise UserError(f"{checkpoint}: {problem}; give another model")
        rows += [RoutingRow(name, key, float(mean.total / mean.number)) for key, mean in sums.items() if mean.number]
    text = (
        f"Means over {split}, with teacher forcing. An entropy is 1 for uniform shares "
        "and 0 for a hard decision. attention_before and attention_after: the entropy of the attention of the "
        "encoder's last layer, without and with what changes its logits. The others are those of --log-routing."
    )
    return make_analysis("routing", "What the models route", text, rows, None)
