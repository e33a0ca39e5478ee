"""The output of an analysis: a table in Markdown and CSV, and a chart in PNG and SVG."""

import csv
import html
import io
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

import matplotlib
from matplotlib.figure import Figure

from fairseq_capsule_lab.files import write_whole


def column(label: str, digits: int = 2) -> Any:
    """A field of a row's dataclass, with its label in tables and the number of decimals in Markdown."""
    return field(metadata={"label": label, "digits": digits})


@dataclass(frozen=True)
class Analysis:
    """One analysis: a text with its title and table, rows of one dataclass with fields made by `column`, a chart.

    Its `kind` is the name of its files. Without a text it has no Markdown file.
    """

    kind: str
    markdown: str
    rows: Sequence[Any]
    figure: Optional[Figure]

    def write(self, folder: Path) -> List[Path]:
        """Write KIND.md and KIND.csv, and KIND.png and KIND.svg of a chart, to a folder; returns the paths.

        Raises:
            UserError: a file could not be written; the files that exist are complete.
        """
        files = {"md": self.markdown.encode()} if self.markdown else {}
        files["csv"] = comma_separated(self.rows).encode()
        if self.figure:
            files |= {kind: _drawn(self.figure, kind) for kind in ("png", "svg")}
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, content in files.items():
            write_whole(folder / f"{self.kind}.{suffix}", content)
        return [folder / f"{self.kind}.{suffix}" for suffix in files]


def make_analysis(kind: str, title: str, text: str, rows: Sequence[Any], figure: Optional[Figure]) -> Analysis:
    """An analysis of a text with a title, and a table of the rows."""
    return Analysis(kind, f"# {title}\n\n{text}\n\n{markdown_table(rows)}", rows, figure)


def series(rows: Sequence[Any], fields: Mapping[str, str]) -> Dict[str, Dict[str, List[Any]]]:
    """For `charts.lines`: the values of each of the `fields`, by label, of the rows of each system."""
    systems = dict.fromkeys(row.system for row in rows)
    return {
        label: {system: [getattr(row, name) for row in rows if row.system == system] for system in systems}
        for label, name in fields.items()
    }


def markdown_table(rows: Sequence[Any]) -> str:
    """Rows as a Markdown table. The cell of a None is empty."""
    columns = fields(rows[0])
    lines = [[item.metadata["label"] for item in columns], ["---"] * len(columns)]
    lines += ([_cell(getattr(row, item.name), item.metadata["digits"]) for item in columns] for row in rows)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def comma_separated(rows: Sequence[Any]) -> str:
    """Rows as CSV, with a header of field names and with unrounded numbers.

    A quote precedes a text that begins like a formula, unless it is a number: a spreadsheet would run it.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [item.name for item in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _guarded(value) for name, value in asdict(row).items()} for row in rows)
    return text.getvalue()


def escaped(text: str) -> str:
    """Text escaped so that Markdown shows it unchanged, also in a table's cell."""
    # Some of these end the line and the cell, others turn the direction of what follows.
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", " ", text)
    # Markdown leaves an underscore inside a word unchanged.
    return re.sub(r"[\\|*`\[\]~#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", html.escape(text, quote=False))


def _guarded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    is_formula = re.match(r"(?![+-][\d.,]+\Z)[=+\-@\t\r]", value)
    # The writer does not quote a carriage return, which ends a row for some readers.
    return ("'" if is_formula else "") + value.replace("\r", " ")


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) else escaped(str(value))


def _drawn(figure: Figure, suffix: str) -> bytes:
    picture = io.BytesIO()
    # The same figures give the same files: no date, and a fixed salt for the names inside an SVG.
    with matplotlib.rc_context({"svg.hashsalt": "fairseq-capsule"}):
        figure.savefig(picture, format=suffix, dpi=110, metadata={"Date": None} if suffix == "svg" else None)
    return picture.getvalue()
