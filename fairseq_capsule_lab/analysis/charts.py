"""Charts that are readable with colour blindness and in grey, as matplotlib figures; those of a page as SVG."""

import html
import io
import itertools
import re
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

# The colours of Okabe and Ito, distinct under colour blindness. Each colour has its own marker.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKS = "osD^vPX"
INK = "#012345"  # a placeholder that no system uses; `_svg` replaces it by the page's text colour
NAMED = 28  # maximum characters of a name in a legend
PAGE_STYLE: Dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fairseq-capsule",
    "font.family": "sans-serif",
    "font.size": 9,
    **{f"{name}.color": INK for name in ("text", "grid", "xtick", "ytick")},
    **{f"axes.{name}": INK for name in ("labelcolor", "edgecolor")},
}


class Band(NamedTuple):
    """The curve of several trainings, with the lowest and highest of them."""

    places: Sequence[float]
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


def lines(
    panels: Mapping[str, Mapping[str, Sequence[Optional[float]]]], ticks: Sequence[str], axis_label: str, title: str
) -> Figure:
    """One panel per measure, side by side; in each panel one line per system over the same ticks.

    `panels` has for each label of an axis the values of each system; None where one is missing.
    """
    figure, axes = _panels(panels, title, width=max(4.2, 0.5 * len(ticks)))
    for axis, systems in zip(axes, panels.values()):
        for number, (system, values) in enumerate(systems.items()):
            axis.plot(range(len(ticks)), np.array(values, float), label=system, **style_of(number))
        axis.set_xticks(range(len(ticks)), ticks, fontsize=8)
        axis.set_xlabel(axis_label, fontsize=9)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure


def bands(panels: Mapping[str, Mapping[str, Band]], axis_label: str, title: str) -> Figure:
    """One panel per measure, side by side; in each one line per system, in its band. The values are logarithmic."""
    figure, axes = _panels(panels, title, width=5.2)
    styles = map(style_of, itertools.count())
    for axis, systems in zip(axes, panels.values()):
        for (system, band), style in zip(systems.items(), styles):
            axis.plot(band.places, band.means, label=system, markersize=3, linewidth=1, **style)
            axis.fill_between(band.places, band.lows, band.highs, color=style["color"], alpha=0.2, linewidth=0)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(ScalarFormatter())
        axis.tick_params(axis="y", which="minor", labelsize=7)
        axis.set_xlabel(axis_label, fontsize=9)
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=7)
    return figure


def points(panels: Mapping[str, Mapping[str, Tuple[Optional[float], float]]], title: str) -> Figure:
    """One panel per measure; in each panel one point per system.

    `panels` has for each label of an axis the value of each system, None if it is missing, and its spread.
    """
    systems = list(next(iter(panels.values())))
    figure, axes = _panels(panels, title, width=1.8 + 0.5 * len(systems))
    for axis, values in zip(axes, panels.values()):
        for number, (value, spread) in enumerate(np.array([values[system] for system in systems], float)):
            axis.errorbar(number, value, yerr=spread, capsize=4, **style_of(number))
        axis.set_xticks(range(len(systems)), systems, rotation=30, ha="right", fontsize=8)
        axis.margins(x=0.2)
        axis.grid(axis="y", alpha=0.3)
    return figure


def scatter(places: Mapping[str, Tuple[float, float, float]], x_label: str, y_label: str, title: str) -> Figure:
    """One point per system, named in a legend. A place has `x`, `y` and the spread of `y`."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.subplots()
    axis.set_title(title, fontsize=10)  # a title of the figure may run into the legend
    for number, (system, (x, y, spread)) in enumerate(places.items()):
        axis.errorbar(x, y, yerr=spread, linestyle="none", capsize=4, label=system, **style_of(number))
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)
    axis.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside right upper")  # inside, it may cover a point
    return figure


def histogram(values: Sequence[float], axis_label: str, title: str) -> Figure:
    """A histogram of differences of sentences, with a line at 0."""
    figure, [axis] = _panels(["sentences"], title, width=6.4)
    axis.hist(values, bins=40, color=COLOURS[0])
    axis.axvline(0, color=COLOURS[-1], linewidth=1)
    axis.set_xlabel(axis_label, fontsize=9)
    axis.tick_params(labelsize=10)
    return figure


def style_of(number: int) -> Dict[str, Any]:
    """The style of the system with this number, from 0."""
    turn, place = divmod(number, len(COLOURS))  # the eighth system has the first colour, but the second mark
    return {"color": COLOURS[place], "marker": MARKS[(place + turn) % len(MARKS)]}


def _panels(panels: Collection[str], title: str, width: float) -> Tuple[Figure, List[Axes]]:
    figure = Figure(figsize=(width * len(panels), 3.6), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
    for axis, label in zip(axes, panels):
        axis.set_ylabel(label, fontsize=9)
        axis.tick_params(labelsize=8)
    return figure, axes


# --- charts of a page: SVG with the text colour of the page, readable in light and dark mode -------------------------


@matplotlib.rc_context(PAGE_STYLE)
def groups_on_page(
    names: Sequence[str], ticks: Sequence[str], groups: Sequence[Sequence[Tuple[float, float]]], labels: Tuple[str, str]
) -> str:
    """One line per system over groups, with intervals. The systems are shifted so that intervals do not overlap.

    `groups` have a score and its interval for each system, `labels` the axes of groups and scores.
    """
    figure, axis = _on_page(3.4)
    for number, (name, estimates) in enumerate(zip(names, zip(*groups))):
        places = [place + 0.07 * (number - (len(names) - 1) / 2) for place in range(len(ticks))]
        scores, intervals = zip(*estimates)
        axis.errorbar(places, scores, yerr=intervals, capsize=2, label=_short(name), **_page_style(number))
    axis.set_xticks(range(len(ticks)), ticks)
    _label(figure, axis, *labels)
    return _svg(figure, f"{labels[1]} of each system by {labels[0]}, with 95% intervals")


@matplotlib.rc_context(PAGE_STYLE)
def curves_on_page(curves: Mapping[str, Mapping[int, float]], systems: Sequence[str], label: str) -> str:
    """One line per system over updates. A system keeps its colour if another system has no such curve."""
    figure, axis = _on_page(3.0)
    for name, curve in curves.items():
        axis.plot(*zip(*sorted(curve.items())), markersize=3, label=_short(name), **_page_style(systems.index(name)))
    _label(figure, axis, "updates", label)
    return _svg(figure, f"{label} of each run by updates")


def _on_page(height: float) -> Tuple[Figure, Axes]:
    figure = Figure(figsize=(4.6, height), layout="constrained")
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    axis.patch.set_visible(False)
    figure.patch.set_visible(False)
    return figure, axis


def _page_style(number: int) -> Dict[str, Any]:
    """The style of a system, with the text colour of the page instead of black."""
    style = style_of(number)
    return {**style, "color": INK} if style["color"] == "#000000" else style


def _label(figure: Figure, axis: Axes, x_label: str, y_label: str) -> None:
    """Add labels of the axes, a grid and a legend."""
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.25)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False, fontsize=8)


def _short(name: str) -> str:
    """A name for a legend: shortened, with `$` escaped, which starts a formula in matplotlib."""
    return (name if len(name) <= NAMED else f"…{name[1 - NAMED :]}").replace("$", r"\$")


def _svg(figure: Figure, description: str) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", written.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = text.replace(COLOURS[0].lower(), "var(--part-0)")  # lighter on a dark page
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # the ids repeat in every chart of the page
    opening = text[: text.index(">")]
    text = re.sub(r' (width|height)="[^"]*"', "", opening) + text[len(opening) :]
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(description)}"', 1)
