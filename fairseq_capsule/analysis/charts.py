"""Charts that are readable with colour blindness and in grey. Every function returns a matplotlib figure."""

from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# The colours of Okabe and Ito, distinct under colour blindness. Each colour has its own marker.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKS = "osD^vPX"

# Axis label of a panel → system → values; None where a value is missing.
Panels = Mapping[str, Mapping[str, Sequence[Optional[float]]]]
# Axis label of a panel → system → value; None where a value is missing.
Points = Mapping[str, Mapping[str, Optional[float]]]


def lines(panels: Panels, ticks: Sequence[str], axis_label: str, title: str) -> Figure:
    """One panel per measure, side by side; in each panel one line per system over the same ticks."""
    figure, axes = _panels(panels, title, width=max(4.2, 0.5 * len(ticks)))
    for axis, systems in zip(axes, panels.values()):
        for number, (system, values) in enumerate(systems.items()):
            axis.plot(range(len(ticks)), [_height(value) for value in values], label=system, **_style(number))
        axis.set_xticks(range(len(ticks)), ticks, fontsize=8)
        axis.set_xlabel(axis_label, fontsize=9)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure


def points(panels: Points, spreads: Points, title: str) -> Figure:
    """One panel per measure; in each panel one point per system with its spread. A missing value leaves a gap."""
    systems = list(next(iter(panels.values())))
    figure, axes = _panels(panels, title, width=1.8 + 0.5 * len(systems))
    for axis, (label, values) in zip(axes, panels.items()):
        for number, system in enumerate(systems):
            axis.errorbar(number, _height(values[system]), yerr=spreads[label][system], capsize=4, **_style(number))
        axis.set_xticks(range(len(systems)), systems, rotation=30, ha="right", fontsize=8)
        axis.margins(x=0.2)
        axis.grid(axis="y", alpha=0.3)
    return figure


def scatter(places: Dict[str, Tuple[float, float]], x_label: str, y_label: str, title: str) -> Figure:
    """One point per system, named in a legend."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axis = figure.subplots()
    for number, (system, (x, y)) in enumerate(places.items()):
        axis.plot([x], [y], linestyle="none", label=system, **_style(number))
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    return figure


def histogram(values: Sequence[float], axis_label: str, title: str) -> Figure:
    """A histogram of differences, with a line at 0."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axis = figure.subplots()
    axis.hist(values, bins=40, color=COLOURS[0])
    axis.axvline(0, color=COLOURS[-1], linewidth=1)
    axis.set_xlabel(axis_label, fontsize=9)
    axis.set_ylabel("sentences", fontsize=9)
    return figure


def _height(value: Optional[float]) -> float:
    """NaN for None: matplotlib leaves it out."""
    return float("nan") if value is None else value


def _style(number: int) -> Dict[str, Any]:
    """The style of the system with this number, from 0."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)]}


def _panels(panels: Collection[str], title: str, width: float) -> Tuple[Figure, List[Axes]]:
    figure = Figure(figsize=(width * len(panels), 3.6), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
    for axis, label in zip(axes, panels):
        axis.set_ylabel(label, fontsize=9)
        axis.tick_params(labelsize=8)
    return figure, axes
