"""Charts that are readable with colour blindness and in grey, as matplotlib figures."""

import itertools
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

# The colours of Okabe and Ito, distinct under colour blindness. Each colour has its own marker.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKS = "osD^vPX"


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
