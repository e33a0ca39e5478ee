"""The page of one sentence as one file: numbers, style and script. It needs no network."""

import base64
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Dict, List, Optional, Union

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap

from fairseq_capsule.inspection.views import OTHER, NamedArray, Panel
from fairseq_capsule_lab.pages.figures import SHARES, SIGNED, SPREAD
from fairseq_capsule_lab.pages.template import render

DIGITS = 3  # of an array's largest number
COLOURS = 64
SIGNED_ON_DARK = ("#ffb45c", "#9c5500", "#26292e", "#6450a8", "#c9bcff")  # orange to purple; 0 is dark
WORDS = ("source", "target", "query", "key")  # axes whose labels are subwords of the sentence or its translation
INDEX, SENTENCES = "index.html", "sentences.js"  # beside the pages of a folder
DIFFERENCE = (
    "{what} of this model minus that of the other{heads}. Purple: this model has more; orange: the other has more. "
    "A picture without both colours means that the models are similar."
)


def page_html(inspection: Any, *, summary: Optional[Dict[str, Any]] = None) -> str:
    """The page of a sentence. It needs no other file and no network.

    Args:
        inspection: an `InspectedSentence`, whose module imports this one.
        summary: for a page in a folder, its entry in lists of pages; the page then links to the index and the others.
    """
    arrays = inspection.arrays
    content = {
        "source": inspection.source,
        "target": inspection.target,
        "views": [
            {
                **asdict(view),
                "panels": [shown for panel in view.of(arrays) for shown in _with_difference(panel, arrays)],
                "choices": view.choices(arrays),
                "last": view.last(arrays),
            }
            for view in inspection.views
        ],
        "arrays": {name: _pack(array) for name, array in arrays.items()},
        "colours": {
            "shares": _colours(SHARES),
            "signed": _colours(SIGNED),
            "signed_on_dark": _colours(LinearSegmentedColormap.from_list("signed_on_dark", SIGNED_ON_DARK)),
        },
        "spread": SPREAD,
    }
    return render(
        "inspector.html",
        inspection=inspection,
        origin=inspection.origin,
        name=f"{inspection.collection} {inspection.number}",
        summary=summary,
        sentences=SENTENCES,
        data=content,
    )


def _with_difference(panel: Panel, arrays: Mapping[str, NamedArray]) -> Iterator[Dict[str, Any]]:
    """A panel for the script of the page. The panel of a second model is followed by the difference of both.

    Capsules, dimensions and heads of two models do not correspond: only values of words have a difference.
    """
    axes = arrays[panel.array].axes
    caption = panel.caption
    for axis, labels in axes.items():
        caption = caption.replace(f"{{{axis}}}", str(len(labels)))
    yield {**asdict(panel), "caption": caption, "difference": False}
    own = arrays.get(panel.array.removeprefix(OTHER))
    alike = own is not None and list(own.axes) == list(axes)
    if panel.other and alike and {panel.rows, panel.columns} <= {*WORDS, None}:
        heads = ", averaged over the heads" if "head" in axes else ""
        text = DIFFERENCE.format(what=panel.title[0].upper() + panel.title[1:], heads=heads)
        difference = replace(
            panel,
            array=panel.array.removeprefix(OTHER),
            title=f"{panel.title}, difference",
            scale=f"±difference of {panel.scale}",
            caption=text,
            distribution=None,
            other=False,
        )
        yield {**asdict(difference), "difference": True}


def _pack(array: NamedArray) -> Dict[str, Any]:
    """Words unchanged; numbers rounded to decimals, as 16-bit integers, low bytes first, compressed."""
    packed: Dict[str, Any] = {"axes": list(array.axes.items()), "shape": array.values.shape}
    if array.values.dtype.kind == "U":
        return {**packed, "words": array.values.tolist()}
    largest = float(np.abs(array.values).max())
    decimals = math.ceil(math.log10(3 * 10 ** (DIGITS - 1) / largest)) if largest else 0
    integers = np.rint(array.values * 10.0**decimals).astype("<i2")
    halves = integers.reshape(-1, 1).view(np.uint8).T.tobytes()
    return {**packed, "decimals": decimals, "numbers": base64.b64encode(zlib.compress(halves, 9)).decode()}


def _colours(name: Union[str, Colormap]) -> List[str]:
    colours = matplotlib.colormaps.get_cmap(name)(np.linspace(0, 1, COLOURS))
    return [matplotlib.colors.to_hex(colour) for colour in colours]
