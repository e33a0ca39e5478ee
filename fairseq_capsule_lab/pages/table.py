"""One page with a table of `reproduce.sh`: the table, its plot, its figures as CSV and the logs of its trainings."""

from pathlib import Path
from typing import Sequence

from markdown_it import MarkdownIt
from markupsafe import Markup

from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.template import render
from fairseq_capsule_lab.tables.definitions import Table


def write_table_page(table: Table, folder: Path, logs: Sequence[Path]) -> Path:
    """Write NAME.html beside the files that `printing.write` wrote. A file that is missing is left out."""
    text, figures, drawing, page = (folder / f"{table.name}.{kind}" for kind in ("md", "csv", "svg", "html"))
    files = {figures.name: figures}
    for log in logs:
        files[str(log.parent.relative_to(folder.parent))] = log
    content = render(
        "table.html",
        title=table.title,
        table=Markup(MarkdownIt("js-default").render(_content(text))),  # this preset escapes HTML
        drawing=Markup("".join(_content(drawing).partition("<svg")[1:])),  # without the XML declaration
        files={name: _content(path) for name, path in files.items() if path.is_file()},
    )
    write_whole(page, content.encode())
    return page


def _content(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
