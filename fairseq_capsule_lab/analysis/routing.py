"""What a trained model routes, as numbers: means over a split of the statistics of mechanisms and of attention."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Sequence

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from capsule_routing.modules import PastFutureAttention
from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.inspection import gather_statistics
from fairseq_capsule.inspection.attention import encoder_attention
from fairseq_capsule.inspection.past_future import past_future
from fairseq_capsule.inspection.statistics import Mean, Statistics, coupling_entropy, mean_where
from fairseq_capsule_lab.analysis.models import batches
from fairseq_capsule_lab.analysis.reports import Report, column, report
from fairseq_capsule_lab.errors import LabError


@dataclass(frozen=True)
class RoutingRow:
    system: str = column("system")
    statistic: str = column("statistic")
    value: float = column("mean", digits=4)


def moved_words(past: Tensor, future: Tensor, padding: Tensor, target_padding: Tensor) -> Mean:
    """The share of the source words that are FUTURE at the first step and PAST at the last.

    A word belongs to the content with the larger share.

    Args:
        past, future: shares `[B, T, I]` of each source word before each step.
        padding: `[B, I]`, `target_padding`: `[B, T]`; True marks padding.
    """
    last = (~target_padding).sum(1).sub(1).view(-1, 1, 1).expand(-1, 1, past.size(2))
    before = (future[:, 0] > past[:, 0]) & ~padding
    after = (past.gather(1, last) > future.gather(1, last)).squeeze(1)
    return mean_where(before & after, ~padding)


def routing_statistics(model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
    """All statistics of a batch: those of `--log-routing`, `MECHANISM_NAME`, and for a whole sentence

    - `attention_before`, `attention_after`: the normalised entropy of the attention of the encoder's last layer,
      without and with what changes its logits;
    - `past_future_moved`: `moved_words`.

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
    routing = getattr(getattr(model.decoder, "past_future", None), "routing", None)
    if routing is not None and not isinstance(routing, PastFutureAttention):
        shares = past_future(model, source, previous).assignment
        padding, target_padding = (text.eq(model.decoder.dictionary.pad()) for text in (source, previous))
        statistics["past_future_moved"] = moved_words(shares[..., 0], shares[..., 1], padding, target_padding)
    return statistics


@torch.no_grad()
def routing_report(names: Sequence[str], checkpoints: Sequence[Path], data: Path, split: str) -> Report:
    """The means of `routing_statistics` of models over a split, with teacher forcing.

    Raises:
        LabError: a model has no attention and routes nothing; also the errors of `load_with_data` and `batches`.
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
            raise LabError(f"{checkpoint}: {problem}; give another model")
        rows += [RoutingRow(name, key, float(mean.total / mean.number)) for key, mean in sums.items() if mean.number]
    text = (
        f"Means over {split}, with teacher forcing. An entropy is 1 for uniform shares "
        "and 0 for a hard decision. attention_before and attention_after: the entropy of the attention of the "
        "encoder's last layer, without and with what changes its logits. past_future_moved: the share of the "
        "source words that are FUTURE at the first step and PAST at the last. The others are those of --log-routing."
    )
    return report("routing", "What the models route", text, rows, None)
