"""`fairseq-capsule table`: a table with our figures beside the paper's."""

import argparse
import html
from pathlib import Path
from typing import Optional, Sequence

from fairseq_capsule_lab.cli.arguments import label, output_folder
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.tables import definitions, gathering, printing
from fairseq_capsule_lab.tables.curves import curves
from fairseq_capsule_lab.tables.runs import Places
from fairseq_capsule_lab.tables.scales import SCALES, load_scale


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", nargs="?", type=label, metavar="TABLE", help="such as duan-table2, or a YAML file (default: list all)"
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--curves", action="store_true", help="also write the learning curves of its rows, with bands over seeds"
    )
    parser.add_argument("--out", type=output_folder, help="folder for the table's files (default: RUNS/SCALE/tables)")


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that `table` and `reproduce` share."""
    parser.add_argument(
        "--scale", type=label, default="paper", metavar="SCALE", help=f"{', '.join(SCALES)} (default: %(default)s)"
    )
    parser.add_argument(
        "--runs", type=output_folder, default=Path("runs"), help="folder of all runs (default: %(default)s)"
    )
    parser.add_argument("--figure", action="store_true", help="also draw the table, if its definition says how")


def run(args: argparse.Namespace) -> None:
    writing = [f"--{name}" for name in ("figure", "curves", "out") if getattr(args, name)]
    if writing and not args.table:
        raise LabError(f"{' '.join(writing)}: no table to write; name a TABLE")
    written = args.runs / args.scale / "tables" / f"{args.table}.md"
    can_print = not definitions.CONFIGS.is_dir() and args.scale in SCALES and written.is_file()
    if args.table and can_print and not writing:
        print(written.read_text(encoding="utf-8"))  # an installation without the definitions
    elif args.table:
        show(args.table, args.scale, args.runs, args.out, args.figure, args.curves)
    else:
        for name in definitions.table_names():
            print(f"{name:16} {definitions.load_table(name).title}")


def show(
    name: str, scale: str, runs: Path, out: Optional[Path] = None, figure: bool = False, with_curves: bool = False
) -> None:
    """Print a table from its results so far, and write it.

    Raises:
        LabError: there is no such table or scale, nothing to draw, or a file cannot be written.
    """
    table, places = definitions.load_table(name), Places(runs.resolve(), Path())
    require_figure(table, figure)
    results = gathering.gather(table, load_scale(scale), places)
    print(printing.markdown(results))
    folder = out or places.runs / scale / "tables"
    paths = printing.write(results, folder, figure)
    paths += curves(table, load_scale(scale), places).write(folder) if with_curves else []
    print("wrote " + ", ".join(map(str, paths)))


def write_page(table: definitions.Table, folder: Path, logs: Sequence[Path]) -> Path:
    """Write one page with the files of a table that `show` wrote and the logs of its trainings."""
    parts = [(path.name, path) for path in (folder / f"{table.name}.{kind}" for kind in ("md", "csv"))]
    parts += [(str(log.parent.relative_to(folder.parent)), log) for log in logs]
    drawn = folder / f"{table.name}.svg"
    text = f"<!doctype html><meta charset=utf-8><title>{html.escape(table.title)}</title>"
    if drawn.is_file():
        picture = drawn.read_text(encoding="utf-8")
        text += picture[picture.index("<svg") :]
    for number, (name, path) in enumerate(parts):
        content = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        opened = "" if number else " open"
        text += f"<details{opened}><summary>{html.escape(name)}</summary><pre>{html.escape(content)}</pre></details>"
    write_whole(folder / f"{table.name}.html", text.encode())
    return folder / f"{table.name}.html"


def require_figure(table: definitions.Table, figure: bool) -> None:
    """Raise a LabError if the table has no figure to draw."""
    if figure and not table.figure:
        raise LabError(f"--figure: the definition of {table.name} does not say what to draw; omit the option")
