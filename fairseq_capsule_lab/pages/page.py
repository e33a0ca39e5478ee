"""The page of one sentence as one file: numbers, style and script. It needs no network."""

import base64
import html
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import Any, Dict, List, Optional, Union

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap

from fairseq_capsule.inspection.views import OTHER, NamedArray, Panel
from fairseq_capsule_lab.pages.figures import SHARES, SIGNED, SPREAD
from fairseq_capsule_lab.pages.sentences import InspectedModel, RoutedSentence
from fairseq_capsule_lab.pages.template import content_policy, embedded, fill, read

LARGEST = 4_800_000  # maximum bytes of a page
DIGITS = (3, 2)  # digits of an array's largest number; the second value if the page is too large with the first
COLOURS = 64
SIGNED_ON_DARK = ("#ffb45c", "#9c5500", "#26292e", "#6450a8", "#c9bcff")  # orange to purple; 0 is dark
SCRIPTS = ("numbers.js", "entropy.js", "pictures.js", "reading.js", "figures.js", "steps.js", "page.js")
WORDS = ("source", "target", "query", "key")  # axes whose labels are subwords of the sentence or its translation
INDEX, SENTENCES = "index.html", "sentences.js"  # beside the pages of a folder
LIST_SOURCES = ("'self'", "file:")  # where a page of a folder finds SENTENCES; a browser may not take a file as 'self'
DIFFERENCE = (
    "{what} of this model minus that of the other{heads}. Purple: this model has more; orange: the other has more. "
    "A picture without both colours means that the models are similar."
)


def page_html(inspection: RoutedSentence, *, summary: Optional[Dict[str, Any]] = None) -> str:
    """The page of a sentence. It needs no other file and no network.

    Args:
        summary: for a page in a folder, its entry in lists of pages; the page then links to the index and the others.
    """
    for digits in DIGITS:
        page = _page(inspection, summary, digits)
        if len(page.encode()) <= LARGEST:
            break
    return page


def page_policy(*sources: str) -> str:
    """The Content-Security-Policy of a page; `sources` are where scripts may come from besides the page."""
    return content_policy(_script(), *sources, images="data: blob:", fonts="data:")


@cache
def _script() -> str:
    return "\n" + "\n".join(map(read, SCRIPTS)) + "\n"


def breakable(name: str) -> str:
    """The name of a file as HTML, with places for a new line after each `/`, `_`, `-` and `.`."""
    return "<wbr>".join(html.escape(part) for part in re.findall(r"[^/_.-]*[/_.-]+|[^/_.-]+", name))


def _page(inspection: RoutedSentence, summary: Optional[Dict[str, Any]], digits: int) -> str:
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
        "arrays": {name: _pack(array, digits) for name, array in arrays.items()},
        "colours": {
            "shares": _colours(SHARES),
            "signed": _colours(SIGNED),
            "signed_on_dark": _colours(LinearSegmentedColormap.from_list("signed_on_dark", SIGNED_ON_DARK)),
        },
        "spread": SPREAD,
    }
    listed = summary is not None
    return fill(
        read("page.html"),
        title=html.escape(f"{inspection.collection} {inspection.number}: {inspection.text}"),
        policy=page_policy(*LIST_SOURCES) if listed else page_policy(),
        summary=f'<script type="application/json" id="summary">{embedded(summary)}</script>' if listed else "",
        style=read("page.css"),
        navigation=read("navigation.html") if listed else "",
        source=html.escape(inspection.text),
        texts=_texts(inspection),
        about=_about(inspection),
        data=embedded(content),
        sentences=f'<script src="{SENTENCES}"></script>' if listed else "",
        script=_script(),
    )


def _texts(inspection: RoutedSentence) -> str:
    """The header of the sentence."""
    translations = {"translation": inspection.translation, "other translation": inspection.other_translation}
    texts = {name: f"<bdi>{html.escape(text)}</bdi>" for name, text in translations.items() if text is not None}
    for name in texts:
        if score := inspection.score(translations[name]):
            texts[name] += f' <span class="score">BLEU {score.bleu:.1f}, chrF {score.chrf:.1f}</span>'
    if inspection.reference is not None:
        texts["reference"] = f"<bdi>{html.escape(inspection.reference)}</bdi>"
    return _rows(texts)


def _about(inspection: RoutedSentence) -> str:
    """The header of models and data."""
    origin = inspection.origin
    sentence = f"{inspection.collection} {inspection.number}"
    data = {"data": f"{origin.data}, {sentence}"} if origin.data else {"sentence": sentence}
    models = {"model": origin.model, "other model": origin.against}
    described = {name: _model(model) for name, model in models.items() if model}
    texts = {**data, "beam": str(origin.beam), "date": origin.date}
    return _rows(described | {name: html.escape(text) for name, text in texts.items()})


def _model(model: InspectedModel) -> str:
    name = f"<strong>{html.escape(model.architecture)}</strong> {html.escape(model.summary)}."
    checkpoint = f" Checkpoint: {breakable(model.checkpoint)}" if model.checkpoint else ""
    return f"{name} {model.parameters:,} parameters.{checkpoint}"


def _rows(texts: Mapping[str, str]) -> str:
    return "\n".join(f"<div><dt>{name}</dt> <dd>{content}</dd></div>" for name, content in texts.items())


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


def _pack(array: NamedArray, digits: int) -> Dict[str, Any]:
    """Words unchanged; numbers rounded to decimals, as 16-bit integers, low bytes first, compressed."""
    packed: Dict[str, Any] = {"axes": list(array.axes.items()), "shape": array.values.shape}
    if array.values.dtype.kind == "U":
        return {**packed, "words": array.values.tolist()}
    largest = float(np.abs(array.values).max())
    decimals = math.ceil(math.log10(3 * 10 ** (digits - 1) / largest)) if largest else 0
    integers = np.rint(array.values * 10.0**decimals).astype("<i2")
    halves = integers.reshape(-1, 1).view(np.uint8).T.tobytes()
    return {**packed, "decimals": decimals, "numbers": base64.b64encode(zlib.compress(halves, 9)).decode()}


def _colours(name: Union[str, Colormap]) -> List[str]:
    colours = matplotlib.colormaps.get_cmap(name)(np.linspace(0, 1, COLOURS))
    return [matplotlib.colors.to_hex(colour) for colour in colours]
