"""A folder of pages: their names, its index, and the list by which one goes from page to page.

Every page keeps its own summary. Index and list are made anew from the pages that are there, so that a page that is
added, replaced or removed is listed as it is.
"""

import html
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional
from urllib.parse import quote

from fairseq_capsule.data.files import write_whole
from fairseq_capsule.inspector.page import INDEX, SENTENCES, embedded, fill, page_html, read
from fairseq_capsule.inspector.thumbnail import thumbnail

if TYPE_CHECKING:
    from fairseq_capsule.inspector.inspection import Inspection

LISTED = 90  # characters of a sentence in a list
# A summary stands at the beginning of its page: at most so many bytes are read to find it.
HEAD = 1 << 20
SUMMARY = re.compile(r'<script type="application/json" id="summary">(.*?)</script>', re.DOTALL)
# What tells one page from another: the same sentence of the same models is written to the page that it has.
IDENTITY = ("sentence", "source", "model", "against", "data", "beam")
TEXTS = ("model", "sentence", "source", "translation", "reference", "date")


def write_inspection(folder: Path, inspection: "Inspection", dpi: int = 110) -> Path:
    """Write the page, the arrays and a picture of each view; `write_lists` then lists the page.

    Their names begin with the sentence's split and number, as `test-3`. Where another sentence, or another model's, has
    that name, `-2` follows, and so on.

    Returns:
        The page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    summary = summary_of(inspection)
    name = _name(folder, summary)
    inspection.save(folder / f"{name}.npz")
    for view in inspection.views:
        picture = io.BytesIO()
        inspection.plot(view.name).savefig(picture, format="png", dpi=dpi)
        write_whole(folder / f"{name}-{view.name.replace('_', '-')}.png", picture.getvalue())
    page = folder / f"{name}.html"
    write_whole(page, page_html(inspection, summary=summary).encode())
    return page


def write_lists(folder: Path) -> Path:
    """Write the index of all pages of a folder, and the list that the pages read.

    Returns:
        The index.
    """
    summaries = {path.name: _read_summary(path) for path in sorted(folder.glob("*.html"), key=_natural)}
    pages = {name: summary for name, summary in summaries.items() if summary is not None}
    listed = [
        {"file": quote(name), "text": f"{summary['sentence']}: {summary['source'][:LISTED]}"}
        for name, summary in pages.items()
    ]
    write_whole(folder / SENTENCES, f"window.sentences = {embedded(listed)};\n".encode())
    index = fill(
        "index.html",
        style=read("page.css"),
        rows="\n".join(_row(name, summary) for name, summary in pages.items()),
        count=str(len(pages)),
        script=read("index.js"),
    )
    write_whole(folder / INDEX, index.encode())
    return folder / INDEX


def summary_of(inspection: "Inspection") -> Dict[str, Any]:
    """What a page keeps of itself for lists, as `page_html` takes it: texts, and numbers or None."""
    origin = inspection.origin
    score = inspection.score()
    image, shown = thumbnail(inspection.views[0], inspection.arrays)
    return {
        "sentence": f"{inspection.collection} {inspection.number}",
        "source": inspection.text,
        "translation": inspection.translation,
        "reference": inspection.reference or "",
        "bleu": score and round(score.bleu, 1),
        "chrf": score and round(score.chrf, 1),
        "model": origin.model.name,
        "checkpoint": origin.model.checkpoint or "",
        "against": origin.against.name if origin.against else "",
        "data": origin.data or "",
        "beam": origin.beam,
        "date": origin.date,
        "image": image,
        "shown": shown,
    }


def _name(folder: Path, summary: Dict[str, Any]) -> str:
    """The name of a sentence's files: its own, or a further one where a page of something else has that."""
    first = re.sub(r"[^\w.-]+|^\.+", "-", summary["sentence"])
    names = (first if number == 1 else f"{first}-{number}" for number in range(1, 1 << 30))
    identity = [summary[key] for key in IDENTITY]

    def is_free(name: str) -> bool:
        path = folder / f"{name}.html"
        if not path.exists():
            return True
        there = _read_summary(path)
        return there is not None and [there[key] for key in IDENTITY] == identity

    return next(filter(is_free, names))


def _read_summary(path: Path) -> Optional[Dict[str, Any]]:
    """The summary of a page; None for another file."""
    with open(path, "rb") as stream:
        found = SUMMARY.search(stream.read(HEAD).decode("utf-8", errors="replace"))
    try:
        summary = json.loads(found[1]) if found else None
        json.dumps(summary, ensure_ascii=False).encode()  # an escape may be half a character
    except ValueError:
        return None
    texts = (*TEXTS, "against", "data", "image", "shown", "checkpoint")
    if not isinstance(summary, dict) or not all(isinstance(summary.get(key), str) for key in texts):
        return None
    if not all(isinstance(summary.get(key, ""), (int, float, type(None))) for key in ("bleu", "chrf", "beam")):
        return None
    return summary


def _row(name: str, summary: Dict[str, Any]) -> str:
    """A row of the index."""

    def cell(key: str, shown: str, kind: str) -> str:
        value = summary[key]
        return f'<td class="{kind}" data-value="{html.escape(str("" if value is None else value))}">{shown}</td>'

    def text(key: str) -> str:
        return cell(key, f"<bdi>{html.escape(summary[key])}</bdi>", "text")

    def score(key: str) -> str:
        return cell(key, "" if summary[key] is None else f"{summary[key]:.1f}", "number")

    models = summary["model"] + (f" against {summary['against']}" if summary["against"] else "")
    link = f'<a href="{quote(name)}">{html.escape(summary["sentence"])}</a>'
    image = summary["image"] if summary["image"].startswith("data:image/png;base64,") else ""
    cells: List[str] = [
        f'<th scope="row" data-value="{html.escape(summary["sentence"])}">{link}</th>',
        f'<td><img src="{html.escape(image)}" alt="{html.escape(summary["shown"])}"></td>',
        text("source"),
        text("translation"),
        text("reference"),
        score("bleu"),
        score("chrf"),
        cell("model", html.escape(models), "model"),
        cell("date", html.escape(summary["date"]), "date"),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _natural(path: Path) -> List[Any]:
    """Orders `test-9` before `test-10`."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", path.stem)]
