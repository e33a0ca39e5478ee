"""What can be read of a model's routing, and how it is shown: arrays with named axes, panels, views.

These are plain data. A mechanism describes with them what it routes; the inspector draws them.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn

OTHER = "against."  # prefix of the names of a second model's arrays


class NamedArray(NamedTuple):
    """Numbers or words with named axes.

    Attributes:
        values: the array.
        axes: for each dimension, in order, its name and the labels along it.
    """

    values: np.ndarray
    axes: Dict[str, Tuple[str, ...]]


class Sentence(NamedTuple):
    """A source sentence and its translation as the model reads them: tokens `[1, I]` and `[1, T]` and their words."""

    source: Tensor
    target: Tensor
    source_words: Tuple[str, ...]
    target_words: Tuple[str, ...]

    @property
    def previous(self) -> Tensor:
        """What the decoder reads at each step: the end of sentence first."""
        return self.target.roll(1, dims=1)


@dataclass(frozen=True)
class Panel:
    """One picture of an array, by two of its axes.

    Attributes:
        array: the array's name.
        title: the text above it.
        rows, columns: the axes shown; without columns the panel has one column.
        scale: panels of the same scale share one range of colours; with `±` in front, colours are centred on 0.
        at: the place along further axes that this panel shows.
        summed: axes along which a word has the sum of its subwords' numbers; along other axes it has their mean.
        other: whether it shows a second model.
        caption: sentences that stand below the picture: what it shows, what it looks like in a trained model, what a
            uniform picture means. `{AXIS}` is replaced by the number of labels of that axis of the array.
        distribution: the axis along which the numbers sum to 1, or None; the page shows their entropy.
    """

    array: str
    title: str
    rows: str
    columns: Optional[str]
    scale: str
    at: Tuple[Tuple[str, str], ...] = ()
    summed: Tuple[str, ...] = ()
    other: bool = False
    caption: str = ""
    distribution: Optional[str] = None

    @property
    def shown(self) -> Tuple[str, ...]:
        """The axes that need no choice."""
        return (self.rows, *((self.columns,) if self.columns else ()), *(axis for axis, _ in self.at))


@dataclass(frozen=True)
class View:
    """Panels that are shown side by side.

    Attributes:
        name: the name that commands use.
        title, caption: for the reader. The caption says what all panels have in common, each panel's own the rest.
        panels: the panels that a model may have.
        steps: the axis along which the page can play step by step; the panels are then the parts of each source word.
            Arrays `past_words`, `past_probabilities`, … are listed beside them.
    """

    name: str
    title: str
    caption: str
    panels: Tuple[Panel, ...]
    steps: Optional[str] = None

    def of(self, arrays: Mapping[str, NamedArray]) -> Tuple[Panel, ...]:
        """The panels for which there are arrays, each followed by that of a second model."""
        pairs = ((panel, replace(panel, array=OTHER + panel.array, other=True)) for panel in self.panels)
        return tuple(panel for pair in pairs for panel in pair if _has(arrays, panel))

    def choices(self, arrays: Mapping[str, NamedArray]) -> Dict[str, Tuple[str, ...]]:
        """The axes along which one place of the arrays is shown, and their labels, without the picture's own axes."""
        found: Dict[str, Dict[str, None]] = {}
        for panel in self.of(arrays):
            for axis, labels in arrays[panel.array].axes.items():
                if axis not in panel.shown:
                    found.setdefault(axis, {}).update(dict.fromkeys(labels))
        return {axis: tuple(sorted(labels, key=int)) for axis, labels in found.items()}

    def last(self, arrays: Mapping[str, NamedArray]) -> Dict[str, str]:
        """For each axis of `choices`, the last label that all panels with this axis have; else the last of all."""
        along = [arrays[panel.array].axes for panel in self.of(arrays)]
        found: Dict[str, str] = {}
        for axis, labels in self.choices(arrays).items():
            common = [label for label in labels if all(label in axes.get(axis, (label,)) for axes in along)]
            found[axis] = (common or labels)[-1]
        return found


def _has(arrays: Mapping[str, NamedArray], panel: Panel) -> bool:
    return panel.array in arrays and all(label in arrays[panel.array].axes[axis] for axis, label in panel.at)


def take(array: NamedArray, panel: Panel, places: Mapping[str, str]) -> np.ndarray:
    """A panel's numbers `[rows, columns]`, at the labels of `places` along the array's further axes."""
    places = {**places, **dict(panel.at)}
    pictured = [axis for axis in array.axes if axis in (panel.rows, panel.columns)]
    index = (slice(None) if axis in pictured else labels.index(places[axis]) for axis, labels in array.axes.items())
    values = array.values[tuple(index)]
    if panel.columns is None:
        return values[:, None]
    return values if pictured[0] == panel.rows else values.T


def named(values: Tensor, **axes: Tuple[str, ...]) -> NamedArray:
    """A tensor as a named array; one axis a dimension, in order."""
    return NamedArray(values.float().cpu().numpy(), axes)


def by_layer(parts: Sequence[Tuple[int, Tensor]], **axes: Tuple[str, ...]) -> NamedArray:
    """One array from the tensors `[1, …]` of the layers with those numbers; its first axis is `layer`."""
    return named(torch.cat([part for _, part in parts]), layer=tuple(str(number) for number, _ in parts), **axes)


def numbers(count: int) -> Tuple[str, ...]:
    """The labels 1 to `count`."""
    return tuple(str(number) for number in range(1, count + 1))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode without gradients; afterwards the model is in the mode that it was in."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
