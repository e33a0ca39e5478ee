"""Pictures of views, by matplotlib; saving them is left to the caller."""

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairseq_capsule.analysis.inspector.arrays import NamedArray
from fairseq_capsule.analysis.inspector.views import Panel, View, take
from fairseq_capsule.errors import UserError

SPREAD = ("head", "iteration")  # all of these are shown beside each other, unless one is chosen
SHARES, SIGNED = "cividis", "PuOr"  # readable for colour-blind eyes and, the first, in grey
CELL, SMALLEST, LARGEST = 0.19, 1.3, 7.0  # of a panel's side, in inches
LABELLED_AT_MOST = 200
# What matplotlib's own font lacks is looked up in these, where they are installed.
FURTHER_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei")


class Shown(NamedTuple):
    """One picture: its numbers `[rows, columns]` and what stands above it."""

    panel: Panel
    title: str
    values: np.ndarray


def plot_view(view: View, arrays: Mapping[str, NamedArray], chosen: Mapping[str, str]) -> Figure:
    """The panels of a view for the chosen labels, the last where nothing is chosen.

    Raises:
        UserError: an axis or a label that the view has not.
    """
    places = _places(view.choices(arrays), chosen)
    rows = _layout(view.of(arrays), arrays, places)
    widths, heights = _sizes(rows)
    ranges = _ranges(shown for row in rows for shown in row)
    title = ", ".join([view.title, *(f"{axis} {label}" for axis, label in places.items())])
    with matplotlib.rc_context({"font.family": _fonts()}):
        figure = Figure(figsize=(sum(widths) + len(widths), sum(heights) + 1.2 * len(rows) + 0.6), layout="constrained")
        figure.suptitle(title)
        ratios = {"width_ratios": widths, "height_ratios": heights}
        grid = figure.subplots(len(rows), len(widths), squeeze=False, gridspec_kw=ratios)
        for axes, row, height in zip(grid, rows, heights):
            for axis, (panel, name, values), width in zip(axes, row, widths):
                image = axis.imshow(values, **ranges[panel.scale], aspect="auto", interpolation="nearest")
                axis.set_title(name, fontsize=9)
                labels = arrays[panel.array].axes
                _label(axis, "y", labels[panel.rows], height)
                _label(axis, "x", labels[panel.columns] if panel.columns else (), width)
                figure.colorbar(image, ax=axis, fraction=0.03, pad=0.02).ax.tick_params(labelsize=7)
            for axis in axes[len(row) :]:
                axis.set_axis_off()
    return figure


def _places(choices: Mapping[str, Tuple[str, ...]], chosen: Mapping[str, str]) -> Dict[str, str]:
    """What is chosen, and the last label of every other axis that is not spread."""
    for axis, label in chosen.items():
        if axis not in choices:
            raise UserError(f"{axis}: there is none to choose here; there is: {', '.join(choices) or 'nothing'}")
        if label not in choices[axis]:
            raise UserError(f"{axis} must be one of {', '.join(choices[axis])}, not {label}")
    return {axis: labels[-1] for axis, labels in choices.items() if axis not in SPREAD} | dict(chosen)


def _layout(panels: Sequence[Panel], arrays: Mapping[str, NamedArray], places: Mapping[str, str]) -> List[List[Shown]]:
    """A row of pictures for each panel that is spread, and one row for all that are not."""
    rows: List[List[Shown]] = []
    single: List[Shown] = []
    for panel in panels:
        array = arrays[panel.array]
        if any(label not in array.axes.get(axis, (label,)) for axis, label in places.items()):
            continue  # a layer without this part
        title = f"{panel.title}, other model" if panel.other else panel.title
        spread = [axis for axis in array.axes if axis not in panel.shown and axis not in places]
        if not spread:
            single.append(Shown(panel, title, take(array, panel, places)))
        for axis in spread:
            labels = array.axes[axis]
            values = (take(array, panel, {**places, axis: label}) for label in labels)
            rows.append([Shown(panel, f"{title}, {axis} {label}", each) for label, each in zip(labels, values)])
    return [*rows, single] if single else rows


def _sizes(rows: List[List[Shown]]) -> Tuple[List[float], List[float]]:
    """The widths of the columns and the heights of the rows."""

    def side(cells: int) -> float:
        return min(max(CELL * cells, SMALLEST), LARGEST)

    widths = [0.0] * max(len(row) for row in rows)
    for row in rows:
        for column, shown in enumerate(row):
            widths[column] = max(widths[column], side(shown.values.shape[1]))
    return widths, [max(side(len(shown.values)) for shown in row) for row in rows]


def _ranges(pictures: Iterable[Shown]) -> Dict[str, Dict[str, Any]]:
    """The colours of every scale: one range, so that pictures can be compared."""
    highest: Dict[str, float] = {}
    for panel, _, values in pictures:
        highest[panel.scale] = max(highest.get(panel.scale, 0.0), float(np.abs(values).max()))
    return {
        scale: {"cmap": SIGNED, "vmin": -bound or -1.0, "vmax": bound or 1.0}
        if scale.startswith("±")
        else {"cmap": SHARES, "vmin": 0.0, "vmax": bound or 1.0}
        for scale, bound in highest.items()
    }


def _label(axis: Axes, side: str, labels: Sequence[str], inches: float) -> None:
    if len(labels) > LABELLED_AT_MOST:
        return
    size = min(8.0, 72 * inches / max(len(labels), 1) * 0.9)
    turned = {"rotation": 90} if side == "x" else {}
    getattr(axis, f"set_{side}ticks")(range(len(labels)), labels, fontsize=size, parse_math=False, **turned)


def _fonts() -> List[str]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(font for font in FURTHER_FONTS if font in installed)]
