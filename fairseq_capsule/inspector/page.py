"""A page of one sentence, whole in one file: its numbers, its style and its script, no network."""

import base64
import html
import json
import math
import re
import zlib
from dataclasses import asdict
from importlib.resources import files
from typing import Any, Dict, List, Sequence

import matplotlib
import numpy as np

from fairseq_capsule.inspector.figures import SHARES, SIGNED
from fairseq_capsule.inspector.inspection import Inspection, Source, joined
from fairseq_capsule.models.views import NamedArray

LARGEST = 4_800_000  # bytes of a page
DIGITS = (3, 2)  # of an array's largest number; fewer where the page would be too large
COLOURS = 64
SCRIPTS = ("numbers.js", "pictures.js", "page.js")
LISTED = 90  # characters of a sentence in a list


def write_page(inspection: Inspection, sentences: Sequence[Source]) -> bytes:
    """The page of a sentence; from it one can go to those of the other `sentences`, in the same folder."""
    for digits in DIGITS:
        page = _page(inspection, sentences, digits)
        if len(page) <= LARGEST:
            break
    return page


def write_index(sentences: Sequence[Source]) -> bytes:
    """The page that leads to all others."""
    items = (
        f'<li><a href="{page_name(source.number)}">{source.number}</a> '
        f"<bdi>{html.escape(plain(source.words))}</bdi></li>"
        for source in sentences
    )
    return _fill(_read("index.html"), title="Sentences", style=_read("page.css"), items="\n".join(items)).encode()


def page_name(number: int) -> str:
    """The file of a sentence's page."""
    return f"{number}.html"


def plain(words: Sequence[str]) -> str:
    """A line of subwords as text."""
    return joined(" ".join(words[:-1]))


def _page(inspection: Inspection, sentences: Sequence[Source], digits: int) -> bytes:
    content = {
        "number": inspection.number,
        "source": inspection.source,
        "target": inspection.target,
        "translation": inspection.translation,
        "reference": inspection.reference,
        "sentences": [
            {"number": each.number, "file": page_name(each.number), "text": plain(each.words)[:LISTED]}
            for each in sentences
        ],
        "views": [_view(view, inspection) for view in inspection.views],
        "arrays": {name: _packed(array, digits) for name, array in inspection.arrays.items()},
        "colours": {"shares": _colours(SHARES), "signed": _colours(SIGNED)},
    }
    title = f"{inspection.number}: {plain(inspection.source)}"
    # Within a script element nothing but its end tag, or a comment, needs to be kept from the parser.
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return _fill(
        _read("page.html"),
        title=html.escape(title),
        style=_read("page.css"),
        data=data,
        script="\n".join(map(_read, SCRIPTS)),
    ).encode()


def _view(view, inspection: Inspection) -> Dict[str, Any]:
    panels = [asdict(panel) for panel in view.of(inspection.arrays)]
    arrays = inspection.arrays
    return {**asdict(view), "panels": panels, "choices": view.choices(arrays), "last": view.last(arrays)}


def _packed(array: NamedArray, digits: int) -> Dict[str, Any]:
    """Words as they are; numbers rounded to decimals, as 16-bit integers, low bytes first, compressed."""
    packed: Dict[str, Any] = {"axes": list(array.axes.items()), "shape": array.values.shape}
    if array.values.dtype.kind == "U":
        return {**packed, "words": array.values.tolist()}
    largest = float(np.abs(array.values).max())
    decimals = math.ceil(math.log10(3 * 10 ** (digits - 1) / largest)) if largest else 0
    integers = np.rint(array.values * 10.0**decimals).astype("<i2")
    halves = integers.reshape(-1, 1).view(np.uint8).T.tobytes()
    return {**packed, "decimals": decimals, "numbers": base64.b64encode(zlib.compress(halves, 9)).decode()}


def _colours(name: str) -> List[str]:
    colours = matplotlib.colormaps[name](np.linspace(0, 1, COLOURS))
    return [matplotlib.colors.to_hex(colour) for colour in colours]


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _fill(template: str, **parts: str) -> str:
    """The template with each `{{name}}` replaced; what stands in a part is left alone."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
