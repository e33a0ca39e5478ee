"""What an analysis gives: rows of figures as a table in Markdown and CSV, and a picture of them in PNG and SVG."""

import csv
import html
import io
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, List, Optional, Sequence

import matplotlib
from matplotlib.figure import Figure

from fairseq_capsule.data.files import write_whole


def column(label: str, digits: int = 2) -> Any:
    """A field of a row's dataclass: its label in tables, and the decimals of its numbers in Markdown."""
    return field(metadata={"label": label, "digits": digits})


@dataclass(frozen=True)
class Report:
    """One analysis.

    Attributes:
        kind: its name, which its files have.
        markdown: what a reader sees: a title, what the figures are of, the table.
        rows: objects of one dataclass, whose fields are `column`s.
        figure: the picture, where there is one.
    """

    kind: str
    markdown: str
    rows: Sequence[Any]
    figure: Optional[Figure]

    def write(self, folder: Path) -> List[Path]:
        """Write KIND.md and .csv, and of a picture .png and .svg, into a folder, which is made where it is missing.

        Returns their paths.

        Raises:
            UserError: one could not be written; what is there is whole.
        """
        files = {"md": self.markdown.encode(), "csv": comma_separated(self.rows).encode()}
        if self.figure:
            files.update({kind: _drawn(self.figure, kind) for kind in ("png", "svg")})
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for suffix, content in files.items():
            paths.append(folder / f"{self.kind}.{suffix}")
            write_whole(paths[-1], content)
        return paths


def markdown_table(rows: Sequence[Any]) -> str:
    """Rows as a Markdown table; what is None stays empty."""
    columns = fields(rows[0])
    lines = [
        [item.metadata["label"] for item in columns],
        ["---"] * len(columns),
        *([_cell(getattr(row, item.name), item.metadata["digits"]) for item in columns] for row in rows),
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def comma_separated(rows: Sequence[Any]) -> str:
    """Rows as CSV, with the names of the fields as its first line and numbers in full."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [item.name for item in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def escaped(text: str) -> str:
    """Text as Markdown shows it as it is, in a table's cell too."""
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)  # some end a line, and with it the cell
    # An underscore inside a word is one to Markdown too.
    return re.sub(r"[\\|*`\[\]~#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", html.escape(text, quote=False))


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) else escaped(str(value))


def _drawn(figure: Figure, suffix: str) -> bytes:
    picture = io.BytesIO()
    # The same figures give the same files: no date, and names inside an SVG that are not drawn at random.
    with matplotlib.rc_context({"svg.hashsalt": "fairseq-capsule"}):
        figure.savefig(picture, format=suffix, dpi=110, metadata={"Date": None} if suffix == "svg" else None)
    return picture.getvalue()
