"""Pictures of views as matplotlib figures. The caller saves them."""

import base64
import io
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave

from capsule_routing.errors import UserError
from fairseq_capsule.inspection import is_plain
from fairseq_capsule.inspection.views import NamedArray, Panel, View, take
from fairseq_capsule_lab.pages.fonts import families

SPREAD = ("head", "iteration")  # all labels are shown side by side, unless one is chosen
SHARES, SIGNED = "cividis", "PuOr"  # readable with colour blindness; the first also in grey
CELL, SMALLEST, LARGEST = 0.19, 2.0, 6.0  # inches: one cell, the smallest and the largest side of a panel
TITLE, GAP, BAR_ROOM, LETTER, MOST_ROOM, NAME = 0.35, 0.12, 0.9, 0.08, 2.0, 0.2  # inches
POINTS, SMALLEST_FONT = 72, 3.5  # points per inch; labels with a smaller font are left out
MOST_CELLS = 40  # of a side of a thumbnail; longer sides are averaged


@dataclass
class Shown:
    """One picture: its numbers `[rows, columns]`, its title and its labels."""

    panel: Panel
    title: str
    values: np.ndarray
    y_labels: Sequence[str]
    x_labels: Sequence[str]
    bar: bool = True

    @property
    def bars(self) -> Sequence[str]:
        """Labels below a picture of bars, as long as those that matplotlib chooses."""
        return () if self.panel.columns else ("0",)


def plot_view(view: View, arrays: Mapping[str, NamedArray], chosen: Mapping[str, str]) -> Figure:
    """Plot the panels of a view for the chosen labels. The default is the last label that all panels have.

    Raises:
        UserError: the view does not have an axis or a label.
    """
    places = _places(view, arrays, chosen)
    rows = _layout(view.of(arrays), arrays, places)
    place = [f"{axis} {label}" for axis, label in places.items()]
    if not rows:
        raise UserError(f"{view.name} has no panel at {', '.join(place)}; choose another place")
    bounds: Dict[str, float] = {}  # one range for every scale, so that pictures are comparable
    for shown in (shown for row in rows for shown in row):
        scale = shown.panel.scale
        bounds[scale] = max(bounds.get(scale, 0.0), float(np.abs(shown.values).max()))
    texts = [text for row in rows for shown in row for text in (shown.title, *shown.y_labels, *shown.x_labels)]
    with matplotlib.rc_context({"font.family": families([view.title, *texts])}):
        return _drawn(rows, ", ".join([view.title, *place]), bounds)


def _places(view: View, arrays: Mapping[str, NamedArray], chosen: Mapping[str, str]) -> Dict[str, str]:
    choices = view.choices(arrays)
    for axis, label in chosen.items():
        if axis not in choices:
            raise UserError(f"{axis}: not an axis of this view; choose from: {', '.join(choices) or 'none'}")
        if label not in choices[axis]:
            raise UserError(f"{axis} must be one of {', '.join(choices[axis])}, not {label}")
    return {axis: label for axis, label in view.last(arrays).items() if axis not in SPREAD} | dict(chosen)


def _drawn(rows: Sequence[Sequence[Shown]], title: str, bounds: Mapping[str, float]) -> Figure:
    """Draw rows of pictures. A layout engine is too slow: it measures thousands of labels several times."""
    columns = [[row[number] for row in rows if number < len(row)] for number in range(max(map(len, rows)))]
    # In inches.
    widths = [max(_side(shown.values.shape[1]) for shown in column) for column in columns]
    lefts = [max(_room(shown.y_labels) for shown in column) for column in columns]
    rights = [BAR_ROOM if any(shown.bar for shown in column) else GAP for column in columns]
    heights = [max(_side(len(shown.values)) for shown in row) for row in rows]
    bottoms = [max(_room(shown.x_labels or shown.bars) for shown in row) for row in rows]
    width = sum(widths) + sum(lefts) + sum(rights)
    height = sum(heights) + sum(bottoms) + TITLE * (len(rows) + 1)
    figure = Figure(figsize=(width, height))

    def add_axes(left: float, bottom: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, bottom / height, wide / width, high / height))

    figure.suptitle(title, y=1 - 0.4 * TITLE / height)
    bottom = height - TITLE
    for row, high, below in zip(rows, heights, bottoms):
        bottom -= TITLE + high
        left = 0.0
        for shown, before, wide, behind in zip(row, lefts, widths, rights):
            left += before
            bar = add_axes(left + wide + GAP / 2, bottom, GAP, high) if shown.bar else None
            colours = _colours(shown.panel.scale, bounds[shown.panel.scale])
            _draw(shown, add_axes(left, bottom, wide, high), bar, colours, (wide, high))
            left += wide + behind
        bottom -= below
    return figure


def _draw(shown: Shown, axis: Axes, bar: Optional[Axes], colours: Dict[str, Any], size: Tuple[float, float]) -> None:
    axis.set_title(shown.title, fontsize=min(9.0, 1.8 * POINTS * size[0] / len(shown.title)))
    if shown.panel.columns is None:
        axis.barh(range(len(shown.values)), shown.values[:, 0])
        axis.set_ylim(len(shown.values) - 0.5, -0.5)
        axis.tick_params(labelsize=7)
        axis.set_xlabel(_name(shown.panel.scale), fontsize=7)
    else:
        image = axis.imshow(shown.values, **colours, aspect="auto", interpolation="nearest")
        _label(axis, "x", shown.panel.columns, shown.x_labels, size[0])
        if bar is not None:
            colourbar = axis.figure.colorbar(image, cax=bar)
            colourbar.ax.tick_params(labelsize=7)
            colourbar.set_label(_name(shown.panel.scale), fontsize=7)
    _label(axis, "y", shown.panel.rows, shown.y_labels, size[1])


def _layout(panels: Sequence[Panel], arrays: Mapping[str, NamedArray], places: Mapping[str, str]) -> List[List[Shown]]:
    """One row of pictures for each panel that is spread, and one row for all other panels."""
    rows: List[List[Shown]] = []
    single: List[Shown] = []
    for panel in panels:
        array = arrays[panel.array]
        if any(label not in array.axes.get(axis, (label,)) for axis, label in places.items()):
            continue  # this layer does not have the array
        title = f"{panel.title}, other model" if panel.other else panel.title
        y_labels = array.axes[panel.rows]
        x_labels = array.axes[panel.columns] if panel.columns else ()
        spread = [axis for axis in array.axes if axis not in panel.shown and axis not in places]
        if not spread:
            values = take(array, panel, places)
            single.append(Shown(panel, title, values, y_labels, x_labels, bar=panel.columns is not None))
        for axis in spread:
            labels = array.axes[axis]
            row = []
            for label in labels:
                values = take(array, panel, {**places, axis: label})
                left = y_labels if label == labels[0] else ()
                row.append(Shown(panel, f"{title}, {axis} {label}", values, left, x_labels, bar=label == labels[-1]))
            rows.append(row)
    for row, below in zip(rows, rows[1:]):
        if len(row) == len(below) and row[0].x_labels == below[0].x_labels:
            for shown in row:
                shown.x_labels = ()
    return [*rows, single] if single else rows


def _side(cells: int) -> float:
    """The side of a picture in inches."""
    return min(max(CELL * cells, SMALLEST), LARGEST)


def _room(labels: Sequence[str]) -> float:
    """The space of labels beside or below a picture, in inches."""
    return GAP + min(MOST_ROOM, max(len(label) for label in labels) * LETTER) + NAME if labels else GAP


def _colours(scale: str, bound: float) -> Dict[str, Any]:
    signed = scale.startswith("±")
    bound = bound or 1.0  # all values are 0
    return {"cmap": SIGNED if signed else SHARES, "vmin": -bound if signed else 0.0, "vmax": bound}


def _name(scale: str) -> str:
    return scale.removeprefix("±")


def _label(axis: Axes, side: str, name: str, labels: Sequence[str], inches: float) -> None:
    size = min(8.0, 0.9 * POINTS * inches / max(len(labels), 1))
    shown = labels if size >= SMALLEST_FONT else ()
    turned = {"rotation": 90} if side == "x" else {}
    getattr(axis, f"set_{side}ticks")(range(len(shown)), shown, fontsize=size, parse_math=False, **turned)
    getattr(axis, f"set_{side}label")(name if labels else "", fontsize=7)


def thumbnail(view: View, arrays: Mapping[str, NamedArray]) -> Tuple[str, str]:
    """An image as a `data:` URL, and its description.

    It shows the view's attention, or else its first panel, in the last layer and iteration, averaged over the heads.
    """
    panels = [panel for panel in view.of(arrays) if not panel.other] or list(view.of(arrays))
    panel = next((panel for panel in panels if is_plain(panel.array)), panels[0])
    array = arrays[panel.array]
    last = view.last(arrays)
    places = {axis: last[axis] if last.get(axis) in labels else labels[-1] for axis, labels in array.axes.items()}
    heads = ("",) if "head" in panel.shown else array.axes.get("head", ("",))
    values = np.mean([take(array, panel, {**places, "head": head}) for head in heads], axis=0)
    for axis, size in enumerate(values.shape):  # average longer sides
        if size > MOST_CELLS:
            starts = np.arange(MOST_CELLS) * size // MOST_CELLS
            counts = np.diff([*starts, size])
            values = np.add.reduceat(values, starts, axis=axis) / (counts[:, None] if axis == 0 else counts)
    picture = io.BytesIO()
    imsave(picture, values, **_colours(panel.scale, float(np.abs(values).max())), format="png")
    return f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}", f"{view.title}: {panel.title}"
