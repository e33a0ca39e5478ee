"""A folder of pages: the names of the pages, the index, and the list of sentences for navigation.

Every page stores its own summary. Index and list are rebuilt from the existing pages, so they are correct after a page
is added, replaced or removed.
"""

import io
import itertools
import json
import re
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import quote

from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.figures import thumbnail
from fairseq_capsule_lab.pages.inspected import InspectedSentence
from fairseq_capsule_lab.pages.page import INDEX, SENTENCES, page_html
from fairseq_capsule_lab.pages.template import render

LISTED = 90  # characters of a sentence in a list
# A summary is at the beginning of its page: the maximum number of bytes to read for it.
HEAD = 1 << 20
SUMMARY = '<script type="application/json" id="summary">'
DPI = 110  # of the pictures
# The identity of a page: the same sentence of the same models replaces its page.
IDENTITY = ("sentence", "source", "checkpoint", "other", "data", "beam")


def write_inspection(folder: Path, inspection: InspectedSentence) -> Path:
    """Write the page, the arrays and a picture of each view; returns the page. `write_lists` lists it afterwards.

    The names begin with the split and the number of the sentence, such as `test-3`. If another sentence or another
    model has that name, `-2` is appended, and so on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    summary = summary_of(inspection)
    name = _name(folder, summary)
    inspection.save(folder / f"{name}.npz")
    for view in inspection.views:
        picture = io.BytesIO()
        inspection.plot(view.name).savefig(picture, format="png", dpi=DPI)
        write_whole(folder / f"{name}-{view.name.replace('_', '-')}.png", picture.getvalue())
    page = folder / f"{name}.html"
    write_whole(page, page_html(inspection, summary=summary).encode())
    return page


def write_lists(folder: Path) -> Path:
    """Write the index of all pages of a folder, and the list of sentences that the pages read; returns the index."""
    files = sorted(filter(Path.is_file, folder.glob("*.html")), key=_natural)
    summaries = {path.name: _read_summary(path) for path in files}
    pages = {name: summary for name, summary in summaries.items() if summary is not None}
    texts = {name: f"{summary['sentence']}: {summary['source'][:LISTED]}" for name, summary in pages.items()}
    entries = [{"file": quote(name), "text": text} for name, text in texts.items()]
    write_whole(folder / SENTENCES, f"window.sentences = {json.dumps(entries, ensure_ascii=False)};\n".encode())
    write_whole(folder / INDEX, render("index.html", pages=pages).encode())
    return folder / INDEX


def summary_of(inspection: InspectedSentence) -> Dict[str, Any]:
    """The summary of a page for lists, as for `page_html`: texts, and numbers or None."""
    origin = inspection.origin
    score = inspection.score()
    image, shown = thumbnail(inspection.views[0], inspection.arrays)
    return {
        "sentence": f"{inspection.collection} {inspection.number}",
        "source": inspection.text,
        "translation": inspection.translation,
        "reference": inspection.reference or "",
        "bleu": round(score.bleu, 1) if score and score.bleu is not None else None,
        "chrf": score and round(score.chrf, 1),
        "model": origin.model.name,
        "checkpoint": origin.model.checkpoint or origin.model.architecture,
        "against": origin.against.name if origin.against else "",
        "other": (origin.against.checkpoint or origin.against.architecture) if origin.against else "",
        "data": origin.data or "",
        "beam": origin.beam,
        "date": origin.date,
        "image": image,
        "shown": shown,
    }


def _name(folder: Path, summary: Dict[str, Any]) -> str:
    """The name of a sentence's files, with a suffix if another page has the name."""
    first = re.sub(r"[^\w.-]+|^\.+", "-", summary["sentence"])
    for name in itertools.chain([first], (f"{first}-{number}" for number in itertools.count(2))):
        path = folder / f"{name}.html"
        other = _read_summary(path) if path.exists() else summary
        if other is not None and all(other[key] == summary[key] for key in IDENTITY):
            return name
    raise AssertionError


def _read_summary(path: Path) -> Optional[Dict[str, Any]]:
    """The summary of a page; None if the file is not a page."""
    with open(path, "rb") as stream:
        head = stream.read(HEAD).decode("utf-8", errors="replace")
    summary = head.partition(SUMMARY)[2].partition("</script>")[0]
    return json.loads(summary) if summary else None


def _natural(path: Path) -> List[Any]:
    """Orders `test-9` before `test-10`."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", path.stem)]
