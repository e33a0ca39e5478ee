"""Pictures. Every function returns a matplotlib figure and leaves saving it to its caller."""

from typing import Dict, List

from matplotlib.figure import Figure
from torch import Tensor

from fairseq_capsule.analysis.past_future import contents
from fairseq_capsule.models.routing_attention import Explanation

ROWS = {
    "before": "attention without routing",
    "after": "attention with routing",
    "vertical": "vertical capsules Ω↑",
    "horizontal": "horizontal capsules Ω↔",
}
SHARES = {"cmap": "cividis", "vmin": 0.0}  # readable for colour-blind eyes and in grey


def plot_attention(explanation: Explanation, words: List[str], title: str) -> Figure:
    """One sentence's attention in one layer: a column a head, a row for each of attention and capsules the layer has.

    Args:
        explanation: tensors `[1, H, L, L]`; a row of a picture is a query, a column a key.
        words: the `L` words.
        title: what stands above the picture.
    """
    shown = {
        name: getattr(explanation, name)[0].float().cpu() for name in ROWS if getattr(explanation, name) is not None
    }
    heads, length = explanation.after.size(1), len(words)
    side = max(2.2, 0.19 * length)
    figure = Figure(figsize=(heads * side + 1.6, len(shown) * side + 1.8), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(shown), heads, squeeze=False, sharex=True, sharey=True)
    highest = float(max(shown["before"].max(), shown["after"].max()))  # one scale, so that the two can be compared
    for row, (name, values) in zip(grid, shown.items()):
        colours = _signed(values) if name in ("vertical", "horizontal") else {**SHARES, "vmax": highest}
        for axis in row:
            axis.tick_params(labelsize=8)
        images = [axis.imshow(head.numpy(), **colours) for axis, head in zip(row, values)]
        row[0].set_ylabel(ROWS[name], fontsize=9)
        figure.colorbar(images[0], ax=list(row), fraction=0.02, pad=0.01)
    for head, (top, bottom) in enumerate(zip(grid[0], grid[-1]), start=1):
        top.set_title(f"head {head}", fontsize=9)
        bottom.set_xticks(range(length), words, rotation=90, fontsize=8)
        bottom.set_yticks(range(length), words, fontsize=8)
    return figure


def plot_assignment(assignment: Tensor, source: List[str], target: List[str], title: str) -> Figure:
    """Where each source word stood at each target step (Zheng et al. 2019, Fig. 4): a panel for each content.

    Args:
        assignment: shares `[T, I, 3]` or `[T, I, 2]`; a row of a panel is a target step, a column a source word.
        source: the `I` source words.
        target: the `T` words that the steps give.
        title: what stands above the picture.
    """
    names = contents(assignment)
    size = len(names) * max(2.6, 0.26 * len(source)) + 2.2, max(2.6, 0.24 * len(target)) + 1.4
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for axis, name, values in zip(axes, names, assignment.float().cpu().unbind(-1)):
        image = axis.imshow(values.numpy(), **SHARES, vmax=1.0, aspect="auto")
        axis.set_title(name, fontsize=9)
        axis.set_xticks(range(len(source)), source, rotation=90, fontsize=8)
        axis.set_yticks(range(len(target)), target, fontsize=8)
    axes[0].set_ylabel("the word that the step gives", fontsize=9)
    figure.colorbar(image, ax=list(axes), fraction=0.02, pad=0.01)
    return figure


def _signed(values: Tensor) -> Dict[str, object]:
    bound = float(values.abs().max()) or 1.0
    return {"cmap": "PuOr", "vmin": -bound, "vmax": bound}
