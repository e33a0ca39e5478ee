"""The interface of inspections, and what they are made of: arrays with named axes, panels and views."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
import torch
import yaml
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_capsule.inspection.statistics import Statistics

VIEWS = Path(__file__).with_suffix(".yaml")  # of the package's own mechanisms
OTHER = "against."  # prefix of the names of a second model's arrays


class NamedArray(NamedTuple):
    """Numbers or words, and the name of each dimension with the labels along it, in order."""

    values: np.ndarray
    axes: Dict[str, Tuple[str, ...]]


class Sentence(NamedTuple):
    """A source sentence and its translation as the model reads them: tokens `[1, I]` and `[1, T]`, and their words."""

    source: Tensor
    target: Tensor
    source_words: Tuple[str, ...]
    target_words: Tuple[str, ...]

    @property
    def previous(self) -> Tensor:
        """The tokens that the decoder reads, `[1, T]`, starting with the end-of-sentence token."""
        return self.target.roll(1, dims=1)


@dataclass(frozen=True)
class Panel:
    """One picture of an array along two of its axes.

    Attributes:
        array: the name of the array.
        title: the text above the picture.
        rows, columns: the axes shown; without columns the panel has one column.
        scale: panels with the same scale share one range of colours; with `±` in front, colours are centred on 0.
        at: the axis and label of further axes at which this panel shows the array.
        summed: axes along which a word has the sum of its subwords' numbers; along other axes it has their mean.
        other: whether the panel shows a second model.
        caption: sentences below the picture: what it shows, what it looks like in a trained model, and what a uniform
            picture means. `{AXIS}` is replaced by the number of labels of that axis of the array.
        distribution: the axis along which the numbers sum to 1 (0 at padding), or None; the page shows their entropy.
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
        """The axes that the reader does not choose a label for."""
        return (self.rows, *((self.columns,) if self.columns else ()), *(axis for axis, _ in self.at))


@dataclass(frozen=True)
class View:
    """Panels that are shown side by side.

    Attributes:
        name: the name that commands use.
        short: a shorter name, if it has one. Views of which a model has only one may share it.
        title, caption: texts for the reader. The caption describes what all panels have in common.
        panels: the panels that a model may have.
        steps: the axis along which the page can be stepped through, or None. The panels then show the parts of each
            source word, and the arrays `past_words`, `past_probabilities`, … are listed next to them.
    """

    name: str
    title: str
    caption: str
    panels: Tuple[Panel, ...]
    steps: Optional[str] = None
    short: Optional[str] = None

    def of(self, arrays: Mapping[str, NamedArray]) -> Tuple[Panel, ...]:
        """Return the panels for which there are arrays, each followed by that of a second model, if any."""
        pairs = ((panel, replace(panel, array=OTHER + panel.array, other=True)) for panel in self.panels)
        axes = ((panel, arrays[panel.array].axes) for pair in pairs for panel in pair if panel.array in arrays)
        return tuple(panel for panel, labels in axes if all(label in labels[axis] for axis, label in panel.at))

    def choices(self, arrays: Mapping[str, NamedArray]) -> Dict[str, Tuple[str, ...]]:
        """Return the further axes of the arrays, where the reader chooses one label, with their labels."""
        choices: Dict[str, Set[str]] = {}
        for panel in self.of(arrays):
            for axis, labels in arrays[panel.array].axes.items():
                if axis not in panel.shown:
                    choices.setdefault(axis, set()).update(labels)
        return {axis: tuple(sorted(labels, key=int)) for axis, labels in choices.items()}

    def last(self, arrays: Mapping[str, NamedArray]) -> Dict[str, str]:
        """Return, for each axis of `choices`, the last label that all panels with this axis share.

        If they share none, it is the last of all labels.
        """
        along = [arrays[panel.array].axes for panel in self.of(arrays)]
        last: Dict[str, str] = {}
        for axis, labels in self.choices(arrays).items():
            common = [label for label in labels if all(label in axes.get(axis, (label,)) for axes in along)]
            last[axis] = (common or labels)[-1]
        return last


def views_in_file(mechanism: str, file: Path = VIEWS) -> Tuple[View, ...]:
    """Return the views under the name of a mechanism in a YAML file: lists of `View`, with the fields of `Panel`.

    `at` is a mapping, `columns` may be left out. views.yaml of this package is an example.
    """
    views = yaml.safe_load(file.read_text(encoding="utf-8"))[mechanism]
    for panel in (panel for view in views for panel in view["panels"]):
        panel.setdefault("columns", None)
        panel.update(at=tuple(panel.get("at", {}).items()), summed=tuple(panel.get("summed", ())))
    return tuple(View(**{**view, "panels": tuple(Panel(**panel) for panel in view["panels"])}) for view in views)


class Inspection:
    """What is shown of a mechanism, and what `--log-routing` logs of it.

    A subclass overrides what it needs. By default nothing is shown and nothing is logged.

    Attributes:
        views: how `arrays` are shown.
    """

    views: Tuple[View, ...] = ()

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        """Recompute what a model routes for a sentence and its translation.

        Called in eval mode, without gradients. Empty for a model without the mechanism.
        """
        return {}

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the values that `--log-routing` logs for a batch. They show whether the routing learns.

        Called in eval mode, without gradients, and only for a model that contains the mechanism. The source tokens `[B,
        I]` and `previous`, the tokens that the decoder reads `[B, T]`, are padded on either side.

        Returns:
            Means by name, logged as `MECHANISM_NAME`. A model always returns the same names.
        """
        return {}

    def predicts_bags(self, model: BaseFairseqModel) -> bool:
        """Return whether `bags` works for a model that contains the mechanism: for `analyze overlap`."""
        return False

    def bags(self, model: BaseFairseqModel, net_input: Mapping[str, Any]) -> Tuple[Tensor, Tensor]:
        """Return what predicts the target words before each step, and those from it on, `[B, T, C]` each.

        Their products with the output embeddings are logits. `net_input` is that of a batch of fairseq.
        """
        raise NotImplementedError

    def assignment(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Tensor:
        """Return the shares of each source word that are translated, untranslated and, perhaps, neither at each step.

        They are `[B, T, I, 2 or 3]`; arguments as in `statistics`. `analyze assignment` compares them with alignments.
        """
        raise NotImplementedError


def take(array: NamedArray, panel: Panel, places: Mapping[str, str]) -> np.ndarray:
    """Return a panel's numbers `[rows, columns]`. `places` gives the label for each further axis of the array."""
    places = {**places, **dict(panel.at)}
    pictured = [axis for axis in array.axes if axis in (panel.rows, panel.columns)]
    index = (slice(None) if axis in pictured else labels.index(places[axis]) for axis, labels in array.axes.items())
    values = array.values[tuple(index)]
    if panel.columns is None:
        return values[:, None]
    return values if pictured[0] == panel.rows else values.T


def named(values: Tensor, **axes: Tuple[str, ...]) -> NamedArray:
    """Convert a tensor of any shape to a named array. `axes` are the labels along each dimension, in order.

    Another number of axes than of dimensions, or of labels than of elements, raises a ValueError.
    """
    labels = {axis: len(names) for axis, names in axes.items()}
    if tuple(values.shape) != tuple(labels.values()):
        raise ValueError(
            f"an array of shape {list(values.shape)} cannot have the numbers of labels {labels}; "
            "name one axis for each dimension and give one label for each element"
        )
    return NamedArray(values.float().cpu().numpy(), axes)


def by_layer(parts: Sequence[Tuple[int, Tensor]], **axes: Tuple[str, ...]) -> NamedArray:
    """Join the tensors `[1, …]` of layers into one array with the first axis `layer`. `parts` has (number, tensor)."""
    return named(torch.cat([part for _, part in parts]), layer=tuple(str(number) for number, _ in parts), **axes)


def numbers(count: int) -> Tuple[str, ...]:
    """Return the labels 1 to `count`."""
    return tuple(str(number) for number in range(1, count + 1))
