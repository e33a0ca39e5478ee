"""How many words of their bags PAST and FUTURE predict, by part of the target (Zheng et al. 2019, §4.3)."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence

import torch
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.losses import bag_overlap_by_step
from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.inspection import bag_inputs, predicts_bags
from fairseq_capsule_lab.analysis.batches import batches
from fairseq_capsule_lab.analysis.charts import lines
from fairseq_capsule_lab.analysis.output import Analysis, column, make_analysis, series

PARTS = 10
WHOLE = "all"


@dataclass(frozen=True)
class OverlapRow:
    system: str = column("system")
    part: str = column("part of the target, %")
    past: Optional[float] = column("r_OL of PAST", digits=4)
    future: Optional[float] = column("r_OL of FUTURE", digits=4)
    sentences: int = column("sentences")


class OverlapMean:
    """Means of rates `[B, T]` over the sentences of a split. A rate is NaN where a bag is empty.

    The whole is the mean over sentences of the mean over steps: the paper's `r_OL`. A part of the target is the mean
    over all steps in it. Step `t` of `T` is in part `⌈parts · t / T⌉`.
    """

    def __init__(self, parts: int = PARTS):
        self.sums = torch.zeros(parts, dtype=torch.float64)
        self.steps = torch.zeros(parts, dtype=torch.long)
        self.whole = 0.0
        self.sentences = 0

    def add(self, rates: Tensor, padding_mask: Tensor) -> None:
        """Add the rates `[B, T]` of a batch. True in `padding_mask` `[B, T]` marks padding of the target."""
        rates, valid = rates.double().cpu(), ~padding_mask.cpu()
        means = rates.nanmean(1)
        self.whole += float(means.nansum())
        self.sentences += int((~means.isnan()).sum())
        part = (len(self.sums) * valid.cumsum(1) - 1) // valid.sum(1, keepdim=True).clamp(min=1)
        counted = ~rates.isnan()
        self.sums.index_add_(0, part[counted], rates[counted])
        self.steps += torch.bincount(part[counted], minlength=len(self.steps))

    def means(self) -> List[Optional[float]]:
        """The mean of the whole, then of every part; None for a part without a step that has a bag."""
        sums, numbers = [self.whole, *self.sums.tolist()], [self.sentences, *self.steps.tolist()]
        return [total / number if number else None for total, number in zip(sums, numbers)]


@torch.no_grad()
def analyze_overlap(names: Sequence[str], checkpoints: Sequence[Path], data: Path, split: str) -> Analysis:
    """`r_OL` of models on a split, for the whole target and for each tenth of it, with teacher forcing.

    Raises:
        UserError: a model has no heads that predict bags of words; also the errors of `load_with_data` and `batches`.
    """
    tenths = [f"{100 * part // PARTS}–{100 * (part + 1) // PARTS}" for part in range(PARTS)]
    rows: List[OverlapRow] = []
    for name, checkpoint in zip(names, checkpoints):
        model, _, task = load_with_data(checkpoint, data)
        if not predicts_bags(model):
            raise UserError(f"{checkpoint}: r_OL needs a model that was trained with --guided-heads bow or both")
        past, future = OverlapMean(), OverlapMean()
        padding = task.target_dictionary.pad()
        for sample in batches(checkpoint, task, split, f"overlap {name}"):
            rates = bag_overlap_by_step(*bag_inputs(model, sample))
            for total, of_content in zip((past, future), rates):
                total.add(of_content, sample["target"].eq(padding))
        parts = zip([WHOLE, *tenths], past.means(), future.means())
        rows += [OverlapRow(name, *values, future.sentences) for values in parts]
    title = "Words of the bags that PAST and FUTURE predict"
    text = (
        f"On {split}: the share of the distinct words of a step's bag that are among the 5 k most probable words, "
        "where k is the number of words in the bag. “all” is the mean over a sentence's steps, then over sentences, as "
        "with --log-routing; a part is the mean over its steps."
    )
    of_parts = [row for row in rows if row.part != WHOLE]
    panels = series(of_parts, {"r_OL of PAST": "past", "r_OL of FUTURE": "future"})
    return make_analysis("overlap", title, text, rows, lines(panels, tenths, "part of the target, %", title))
