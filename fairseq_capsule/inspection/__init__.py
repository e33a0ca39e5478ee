"""What the inspector shows and `--log-routing` logs of each mechanism. It computes again what a model routed."""

from typing import Dict, Mapping, Tuple

from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_capsule.inspection.aggregation import AggregationInspection
from fairseq_capsule.inspection.attention import PLAIN
from fairseq_capsule.inspection.attention_routing import AttentionRoutingInspection
from fairseq_capsule.inspection.global_representation import GlobalRepresentationInspection
from fairseq_capsule.inspection.past_future import PastFutureInspection
from fairseq_capsule.inspection.selective_attention import SelectiveAttentionInspection
from fairseq_capsule.inspection.statistics import Statistics, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.inspection.views import (
    OTHER,
    Inspection,
    NamedArray,
    Panel,
    Sentence,
    View,
    named,
    views_in_file,
)
from fairseq_capsule.mechanisms.base import active_mechanisms
from fairseq_capsule.models.outputs import evaluating

__all__ = [
    "Inspection",
    "NamedArray",
    "Panel",
    "Sentence",
    "Statistics",
    "View",
    "all_views",
    "capsule_norms",
    "coupling_entropy",
    "gather_arrays",
    "gather_statistics",
    "is_plain",
    "mean_where",
    "named",
    "views_in_file",
    "views_of",
]

# By the name of the mechanism, in the order in which arrays are gathered. Those of other packages follow.
INSPECTIONS: Dict[str, Inspection] = {
    "global_representation": GlobalRepresentationInspection(),
    "past_future": PastFutureInspection(),
    "selective_attention": SelectiveAttentionInspection(),
    "attention_routing": AttentionRoutingInspection(),
    "aggregation": AggregationInspection(),
}


def gather_arrays(model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
    """Return the arrays of all inspections by name. They are recomputed; the model stores nothing."""
    arrays: Dict[str, NamedArray] = {}
    with evaluating(model):
        for inspection in INSPECTIONS.values():
            arrays.update(inspection.arrays(model, sentence))
    return arrays


def gather_statistics(model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Dict[str, Statistics]:
    """Return the statistics of a batch by the name of the mechanism; arguments as in `Inspection.statistics`.

    The model runs once more for each mechanism, in eval mode and without gradients. Its state does not change.
    """
    names = [mechanism.name for mechanism in active_mechanisms(getattr(model, "cfg", None))]
    with evaluating(model):
        return {name: INSPECTIONS[name].statistics(model, source, previous) for name in names if name in INSPECTIONS}


def all_views() -> Tuple[View, ...]:
    """Return all views in the order of the commands: those with an attention of plain models first."""
    views = (view for inspection in INSPECTIONS.values() for view in inspection.views)
    return tuple(sorted(views, key=lambda view: not any(is_plain(panel.array) for panel in view.panels)))


def views_of(arrays: Mapping[str, NamedArray]) -> Tuple[View, ...]:
    """Return the views of a model's arrays: of its mechanisms, then of those of a second model, then of attention."""

    def of_others(view: View) -> int:
        routed = [panel.other for panel in view.of(arrays) if not is_plain(panel.array.removeprefix(OTHER))]
        return 2 if not routed else int(all(routed))

    return tuple(sorted((view for view in all_views() if view.of(arrays)), key=of_others))


def is_plain(array: str) -> bool:
    """Return whether a model without any mechanism has an array of this name."""
    return array in PLAIN
