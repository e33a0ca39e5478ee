"""The invariant that the inspector can show what an architecture routes."""

import re
from dataclasses import fields
from enum import Enum
from typing import Any, Dict, Iterable, Iterator, List, Set

import numpy as np
from fairseq.models import BaseFairseqModel

from capsule_routing.errors import UserError
from fairseq_capsule.inspection import INSPECTIONS, Inspection, all_views, gather_arrays, is_plain
from fairseq_capsule.inspection.views import NamedArray, Panel, Sentence, View
from fairseq_capsule.mechanisms.base import Mechanism
from fairseq_capsule.mechanisms.registry import active_mechanisms, options_off
from fairseq_capsule.testing.small_models import PRESET, Options, build_small, config_of, make_sentences


def check_inspection(arch: str, options: Options = PRESET) -> None:
    """Check the arrays and views of the mechanisms that the architecture contains.

    - Each array has one label for each element along each axis, and its numbers are finite.
    - The axes that a panel and its caption name are axes of its array. The numbers along `distribution` sum to 1, or to
      0 at padding. An axis along which the reader chooses a label has numbers as labels.
    - Each panel is shown: in this model, in one with the options of the mechanism's presets, or in one of these with
      another choice for one option of the mechanism.
    - With everything off the model has only arrays that any model has (`inspection.is_plain`).
    """
    model = build_small(arch, options)
    _check_arrays(model)
    for mechanism in active_mechanisms(getattr(model, "cfg", None)):
        views = INSPECTIONS.get(mechanism.name, Inspection()).views
        missing = {panel for view in views for panel in view.panels}
        for variant in _variants(mechanism, options):
            if missing:
                missing -= _panels(views, arch, variant)
        unknown = sorted({panel.array for panel in missing})
        titles = sorted({panel.title for panel in missing})
        assert not missing, f"{mechanism.name}: panels {titles} are never shown; no model has them in arrays {unknown}"
    off = _arrays(build_small(arch, {**options, **options_off(config_of(arch)())}))
    routed = sorted(name for name in off if not is_plain(name))
    assert not routed, f"with all mechanisms off the model still has the arrays {routed}"


def _variants(mechanism: Mechanism, options: Options) -> Iterator[Options]:
    """Yield options of models with the mechanism; see `check_inspection`."""
    own = [item for item in fields(mechanism.options) if not item.name.startswith("_")]
    defaults = {item.name: item.default for item in own}
    for start in (options, {**options, **defaults, **mechanism.on}):
        yield start
        for item in own:
            kind = item.type
            if isinstance(kind, type) and issubclass(kind, Enum):
                yield from ({**start, item.name: choice.value} for choice in kind)
            elif kind is bool:
                yield from ({**start, item.name: choice} for choice in (True, False))


def _panels(views: Iterable[View], arch: str, options: Options) -> Set[Panel]:
    """Return the panels of views that a model shows. A model that cannot be built shows none."""
    try:
        model = build_small(arch, options)
    except UserError:
        return set()
    arrays = _check_arrays(model)
    return {panel for view in views for panel in view.of(arrays)}


def _check_arrays(model: BaseFairseqModel) -> Dict[str, NamedArray]:
    """Check the arrays of a model and the panels that show them. Return the arrays."""
    arrays = _arrays(model)
    for name, array in arrays.items():
        labels = {axis: len(names) for axis, names in array.axes.items()}
        shape = array.values.shape
        assert shape == tuple(labels.values()), f"array {name} of shape {shape} has the numbers of labels {labels}"
        finite = array.values.dtype.kind != "f" or np.isfinite(array.values).all()
        assert finite, f"array {name} has numbers that are not finite"
    for view in all_views():
        for panel in view.panels:
            if panel.array in arrays:
                _check_panel(view, panel, arrays[panel.array])
    return arrays


def _check_panel(view: View, panel: Panel, array: NamedArray) -> None:
    where = f"view {view.name}, panel {panel.title!r}"
    named: Dict[str, List[Any]] = {
        "rows": [panel.rows],
        "columns": [panel.columns],
        "at": [axis for axis, _ in panel.at],
        "summed": list(panel.summed),
        "distribution": [panel.distribution],
        "caption": re.findall(r"\{(.*?)\}", panel.caption),
    }
    for attribute, axes in named.items():
        unknown = [axis for axis in axes if axis is not None and axis not in array.axes]
        assert not unknown, f"{where}: {attribute} names {unknown}; the array {panel.array} has {list(array.axes)}"
    for axis, labels in array.axes.items():
        chosen = axis not in panel.shown and not all(label.isdecimal() for label in labels)
        assert not chosen, f"{where}: the labels of {axis} must be numbers, or `at` must name one of {labels}"
    if panel.distribution:
        sums = array.values.sum(axis=list(array.axes).index(panel.distribution))
        wrong = sums[(np.abs(sums - 1) > 1e-3) & (np.abs(sums) > 1e-3)]
        assert not wrong.size, f"{where}: the numbers along {panel.distribution} sum to {wrong[0]:.3g}, not to 1"


def _arrays(model: BaseFairseqModel) -> Dict[str, NamedArray]:
    sample = make_sentences([(7, 5)])[0]
    words = (tuple(f"w{token}" for token in sample[side].tolist()) for side in ("source", "target"))
    return gather_arrays(model, Sentence(sample["source"][None], sample["target"][None], *words))
