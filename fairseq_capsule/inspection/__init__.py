"""What the inspector shows and `--log-routing` logs of each mechanism. It computes again what a model routed."""

from typing import Any, Dict, Mapping, Optional, Tuple

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
from fairseq_capsule.mechanisms.base import Mechanism
from fairseq_capsule.mechanisms.registry import active_mechanisms
from fairseq_capsule.models.outputs import evaluating, output_embeddings

__all__ = [
    "Inspection",
    "NamedArray",
    "Panel",
    "Sentence",
    "Statistics",
    "View",
    "all_views",
    "assigning_mechanism",
    "bag_inputs",
    "capsule_norms",
    "coupling_entropy",
    "gather_arrays",
    "gather_statistics",
    "is_plain",
    "mean_where",
    "named",
    "predicts_bags",
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


def inspections_of(model: BaseFairseqModel) -> Dict[str, Inspection]:
    """Return the inspections of the mechanisms that a model contains, by the name of the mechanism."""
    names = [mechanism.name for mechanism in active_mechanisms(getattr(model, "cfg", None))]
    return {name: INSPECTIONS[name] for name in names if name in INSPECTIONS}


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
    shown = inspections_of(model)
    with evaluating(model):
        return {name: inspection.statistics(model, source, previous) for name, inspection in shown.items()}


def predicts_bags(model: BaseFairseqModel) -> bool:
    """Return whether a mechanism of a model predicts bags of target words."""
    return any(inspection.predicts_bags(model) for inspection in inspections_of(model).values())


def bag_inputs(model: BaseFairseqModel, sample: Mapping[str, Any]) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the arguments of `losses.bag_overlap` for a batch with targets, of a model that `predicts_bags`."""
    inspection = next(inspection for inspection in inspections_of(model).values() if inspection.predicts_bags(model))
    padding_mask = sample["target"].eq(model.decoder.dictionary.pad())
    return (*inspection.bags(model, sample["net_input"]), output_embeddings(model), sample["target"], padding_mask)


def assigning_mechanism(model: BaseFairseqModel) -> Optional[Mechanism]:
    """Return the first mechanism of a model whose inspection has an `assignment`, or None."""
    for mechanism in active_mechanisms(getattr(model, "cfg", None)):
        if type(INSPECTIONS.get(mechanism.name, Inspection())).assignment is not Inspection.assignment:
            return mechanism
    return None


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
