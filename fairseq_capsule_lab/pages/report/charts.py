"""Charts of the report, as SVG with the text colour of the page: readable in light and dark mode."""

import html
import io
import re
from typing import Any, Dict, Mapping, Sequence, Tuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairseq_capsule_lab.analysis.charts import COLOURS, style_of

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


@matplotlib.rc_context(PAGE_STYLE)
def groups_chart(
    names: Sequence[str], ticks: Sequence[str], groups: Sequence[Sequence[Tuple[float, float]]], labels: Tuple[str, str]
) -> str:
    """One line per system over groups, with intervals. The systems are shifted so that intervals do not overlap.

    `groups` have a score and its interval for each system, `labels` the axes of groups and scores.
    """
    figure, axis = _empty(3.4)
    for number, (name, estimates) in enumerate(zip(names, zip(*groups))):
        places = [place + 0.07 * (number - (len(names) - 1) / 2) for place in range(len(ticks))]
        scores, intervals = zip(*estimates)
        axis.errorbar(places, scores, yerr=intervals, capsize=2, label=_short(name), **_style(number))
    axis.set_xticks(range(len(ticks)), ticks)
    _label(figure, axis, *labels)
    return _svg(figure, f"{labels[1]} of each system by {labels[0]}, with 95% intervals")


@matplotlib.rc_context(PAGE_STYLE)
def curves_chart(curves: Mapping[str, Mapping[int, float]], systems: Sequence[str], label: str) -> str:
    """One line per system over updates. A system keeps its colour if another system has no such curve."""
    figure, axis = _empty(3.0)
    for name, curve in curves.items():
        axis.plot(*zip(*sorted(curve.items())), markersize=3, label=_short(name), **_style(systems.index(name)))
    _label(figure, axis, "updates", label)
    return _svg(figure, f"{label} of each run by updates")


def _empty(height: float) -> Tuple[Figure, Axes]:
    figure = Figure(figsize=(4.6, height), layout="constrained")
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    axis.patch.set_visible(False)
    figure.patch.set_visible(False)
    return figure, axis


def _style(number: int) -> Dict[str, Any]:
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
