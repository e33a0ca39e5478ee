"""What is shown together: a view is a few panels, and a panel a picture of an array by two of its axes."""

from dataclasses import dataclass, replace
from typing import Dict, Mapping, Optional, Tuple

import numpy as np

from fairseq_capsule.analysis.inspector.arrays import NamedArray
from fairseq_capsule.analysis.inspector.past_future import CONTENTS

OTHER = "against."  # what the arrays of a second model are called by


@dataclass(frozen=True)
class Panel:
    """One picture of numbers.

    Attributes:
        array: the array's name.
        title: what stands above it.
        rows, columns: the axes shown; without columns an array has one.
        scale: panels of one scale have one range of colours; `±` in front: colours are around 0.
        at: where the array is taken along further axes.
        summed: the axes along which a word has the sum of its subwords' numbers; along others it has their mean.
        other: whether it is a second model's.
    """

    array: str
    title: str
    rows: str
    columns: Optional[str]
    scale: str
    at: Tuple[Tuple[str, str], ...] = ()
    summed: Tuple[str, ...] = ()
    other: bool = False

    @property
    def shown(self) -> Tuple[str, ...]:
        """The axes that need no choice."""
        return (self.rows, *((self.columns,) if self.columns else ()), *(axis for axis, _ in self.at))


@dataclass(frozen=True)
class View:
    """Panels that stand side by side.

    Attributes:
        name: as commands call it.
        title, caption: for its reader.
        panels: those that a model may have.
        steps: the axis that can be gone through step by step, with the words of PAST and FUTURE.
    """

    name: str
    title: str
    caption: str
    panels: Tuple[Panel, ...]
    steps: Optional[str] = None

    def of(self, arrays: Mapping[str, NamedArray]) -> Tuple[Panel, ...]:
        """The panels for which there are arrays, each with that of a second model beside it."""
        pairs = ((panel, replace(panel, array=OTHER + panel.array, other=True)) for panel in self.panels)
        return tuple(panel for pair in pairs for panel in pair if _has(arrays, panel))

    def choices(self, arrays: Mapping[str, NamedArray]) -> Dict[str, Tuple[str, ...]]:
        """The axes along which one place of the arrays is shown, and their labels; the picture's own left out."""
        found: Dict[str, Dict[str, None]] = {}
        for panel in self.of(arrays):
            for axis, labels in arrays[panel.array].axes.items():
                if axis not in panel.shown:
                    found.setdefault(axis, {}).update(dict.fromkeys(labels))
        return {axis: tuple(sorted(labels, key=int)) for axis, labels in found.items()}

    def last(self, arrays: Mapping[str, NamedArray]) -> Dict[str, str]:
        """The last label of each axis of `choices` that all panels with this axis have; the last of all if there is
        none."""
        along = [arrays[panel.array].axes for panel in self.of(arrays)]
        found: Dict[str, str] = {}
        for axis, labels in self.choices(arrays).items():
            common = [label for label in labels if all(label in axes.get(axis, (label,)) for axes in along)]
            found[axis] = (common or labels)[-1]
        return found


def _has(arrays: Mapping[str, NamedArray], panel: Panel) -> bool:
    return panel.array in arrays and all(label in arrays[panel.array].axes[axis] for axis, label in panel.at)


def _self_attention(side: str, title: str, caption: str) -> View:
    def panel(name: str, title: str, scale: str, summed: Tuple[str, ...] = ()) -> Panel:
        return Panel(f"{side}_{name}", title, "query", "key", scale, summed=summed)

    panels = (
        panel("attention_before", "attention without routing", "attention", ("key",)),
        panel("attention", "attention", "attention", ("key",)),
        panel("vertical", "vertical capsules Ω↑", "±vertical"),
        panel("horizontal", "horizontal capsules Ω↔", "±horizontal"),
    )
    return View(f"{side}_attention", title, caption, panels)


VIEWS = (
    _self_attention(
        "encoder",
        "Attention of the encoder",
        "Each word, a row, attends to the words of the columns. Capsules are added to the logits.",
    ),
    _self_attention(
        "decoder",
        "Attention of the decoder",
        "What the decoder has read, a row, attends to what it read before. Capsules are added to the logits.",
    ),
    View(
        "cross_attention",
        "Attention to the source",
        "Each word of the translation, a row, takes from the source words of the columns.",
        (Panel("cross_attention", "attention", "target", "source", "attention", summed=("source",)),),
    ),
    View(
        "past_future",
        "PAST and FUTURE",
        "Before each word of the translation, a row, is said: how much of each source word is translated (PAST), "
        "is not (FUTURE), or is neither; of two attentions, what each takes of it.",
        tuple(
            Panel("assignment", content, "target", "source", "share", (("content", content),)) for content in CONTENTS
        ),
        steps="target",
    ),
    View(
        "global_representation",
        "Global representation",
        "Each capsule, a column, is filled by the source words of the rows, and taken by its weight; "
        "each word of the translation takes as much of the result as its gate is open.",
        (
            Panel("global_coupling", "words in capsules", "source", "capsule", "coupling", summed=("source",)),
            Panel("global_weights", "weights of the capsules", "capsule", None, "weights"),
            Panel("global_gate_mean", "gate, mean", "target", None, "mean"),
            Panel("global_gate", "gate", "target", "dimension", "gate"),
        ),
    ),
    View(
        "capsules",
        "Capsules",
        "How much of each source word, a row, goes to each capsule, after each iteration of the routing.",
        (Panel("capsule_coupling", "words in capsules", "source", "capsule", "coupling"),),
    ),
)


def views_of(arrays: Mapping[str, NamedArray]) -> Tuple[View, ...]:
    """The views that the arrays of a model give."""
    return tuple(view for view in VIEWS if view.of(arrays))


def take(array: NamedArray, panel: Panel, places: Mapping[str, str]) -> np.ndarray:
    """A panel's numbers `[rows, columns]` where the array's further axes have the labels of `places`."""
    places = {**places, **dict(panel.at)}
    pictured = [axis for axis in array.axes if axis in (panel.rows, panel.columns)]
    index = (slice(None) if axis in pictured else labels.index(places[axis]) for axis, labels in array.axes.items())
    values = array.values[tuple(index)]
    if panel.columns is None:
        return values[:, None]
    return values if pictured[0] == panel.rows else values.T
