"""A small picture of a view, for a list of pages."""

import base64
import io
from typing import Mapping, Tuple

import numpy as np
from matplotlib.image import imsave

from fairseq_capsule.inspection import is_plain
from fairseq_capsule.inspection.views import NamedArray, Panel, View, take
from fairseq_capsule_lab.pages.figures import SHARES, SIGNED

LARGEST = 40  # maximum cells of a side; longer sides are averaged


def thumbnail(view: View, arrays: Mapping[str, NamedArray]) -> Tuple[str, str]:
    """An image as a `data:` URL, and its description.

    The image shows the attention panel of the view, or else its first panel, in the last layer and iteration, averaged
    over the heads.
    """
    panels = [panel for panel in view.of(arrays) if not panel.other] or list(view.of(arrays))
    panel = next((panel for panel in panels if is_plain(panel.array)), panels[0])
    values = _smaller(_mean_of_heads(arrays[panel.array], panel, view.last(arrays)))
    bound = float(np.abs(values).max()) or 1.0
    signed = panel.scale.startswith("±")
    written = io.BytesIO()
    imsave(written, values, cmap=SIGNED if signed else SHARES, vmin=-bound if signed else 0, vmax=bound, format="png")
    return f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}", f"{view.title}: {panel.title}"


def _mean_of_heads(array: NamedArray, panel: Panel, last: Mapping[str, str]) -> np.ndarray:
    places = {axis: last.get(axis, labels[-1]) for axis, labels in array.axes.items()}
    places = {axis: label if label in array.axes[axis] else array.axes[axis][-1] for axis, label in places.items()}
    if "head" in panel.shown or "head" not in array.axes:
        return take(array, panel, places)
    return np.mean([take(array, panel, {**places, "head": head}) for head in array.axes["head"]], axis=0)


def _smaller(values: np.ndarray) -> np.ndarray:
    for axis, size in enumerate(values.shape):
        if size > LARGEST:
            starts = np.arange(LARGEST) * size // LARGEST
            sums = np.add.reduceat(values, starts, axis=axis)
            counts = np.diff([*starts, size])
            values = sums / (counts[:, None] if axis == 0 else counts)
    return values
