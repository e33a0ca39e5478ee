"""The charts of the page, as SVG with the text colour of the page: readable in light and dark mode."""

import html
import io
import re
from typing import Any, Dict, Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairseq_capsule_lab.analysis.charts import COLOURS, style_of
from fairseq_capsule_lab.pages.report.comparison import Estimate
from fairseq_capsule_lab.runs.training_log import Curve

INK = "#012345"  # a placeholder that no system uses; `_svg` replaces it by the page's text colour
NAMED = 28  # maximum characters of a name in a legend
STYLE: Dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fairseq-capsule",
    "font.family": "sans-serif",
    "font.size": 9,
    **{f"{name}.color": INK for name in ("text", "grid", "xtick", "ytick")},
    **{f"axes.{name}": INK for name in ("labelcolor", "edgecolor")},
}


def dots(names: Sequence[str], estimates: Sequence[Estimate], label: str) -> str:
    """One row per system, with its interval."""
    with matplotlib.rc_context(STYLE):
        figure, axis = _figure(1.1 + 0.32 * len(names))
        for place, estimate in enumerate(estimates):
            axis.errorbar(estimate.score, place, xerr=estimate.interval, capsize=4, **_style(place))
        axis.set_yticks(range(len(names)), [_short(name) for name in names])
        axis.invert_yaxis()
        axis.margins(y=0.15)
        axis.set_xlabel(label)
        axis.grid(axis="x", alpha=0.25)
        return _svg(figure, f"{label} of each system with its 95% interval")


def groups(
    names: Sequence[str], ticks: Sequence[str], estimates: Sequence[Sequence[Estimate]], labels: Sequence[str]
) -> str:
    """One line per system over groups, with intervals. The systems are shifted so that intervals do not overlap.

    Args:
        estimates: for each group, the estimates of all systems.
        labels: the axis labels of groups and scores.
    """
    with matplotlib.rc_context(STYLE):
        figure, axis = _figure(3.4)
        for number, name in enumerate(names):
            places = [place + 0.07 * (number - (len(names) - 1) / 2) for place in range(len(ticks))]
            own = [group[number] for group in estimates]
            axis.errorbar(
                places,
                [estimate.score for estimate in own],
                yerr=[estimate.interval for estimate in own],
                capsize=2,
                label=_short(name),
                **_style(number),
            )
        axis.set_xticks(range(len(ticks)), ticks)
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])
        axis.grid(alpha=0.25)
        _legend(figure, axis)
        return _svg(figure, f"{labels[1]} of each system by {labels[0]}, with 95% intervals")


def curves(found: Mapping[str, Curve], systems: Sequence[str], label: str) -> str:
    """One line per system over updates. A system keeps its colour if another system has no such curve."""
    with matplotlib.rc_context(STYLE):
        figure, axis = _figure(3.0)
        for name, curve in found.items():
            updates = sorted(curve)
            style = _style(systems.index(name))
            axis.plot(updates, [curve[update] for update in updates], markersize=3, label=_short(name), **style)
        axis.set_xlabel("updates")
        axis.set_ylabel(label)
        axis.grid(alpha=0.25)
        _legend(figure, axis)
        return _svg(figure, f"{label} of each run by updates")


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.6, height), layout="constrained")
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    axis.patch.set_visible(False)
    figure.patch.set_visible(False)
    return figure, axis


def _style(number: int) -> Dict[str, Any]:
    """The style of `charts`, with the text colour of the page instead of black."""
    style = style_of(number)
    return {**style, "color": INK} if style["color"] == "#000000" else style


def _legend(figure: Figure, axis: Axes) -> None:
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False, fontsize=8)


def _short(name: str) -> str:
    """A name for a legend: shortened, with `$` escaped, which starts a formula in matplotlib."""
    name = name if len(name) <= NAMED else f"…{name[1 - NAMED :]}"
    return name.replace("$", r"\$")


def _svg(figure: Figure, description: str) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", written.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = text.replace(COLOURS[0].lower(), "var(--first)")  # lighter on a dark page
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # the ids repeat in every chart of the page
    opening = text[: text.index(">")]
    text = re.sub(r' (width|height)="[^"]*"', "", opening) + text[len(opening) :]
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(description)}"', 1)
