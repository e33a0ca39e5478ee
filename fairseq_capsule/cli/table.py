"""`fairseq-capsule table`: a paper's table with our figures beside the paper's."""

import argparse
from pathlib import Path

from fairseq_capsule.cli.arguments import label, output_folder
from fairseq_capsule.tables import definitions, gathering, printing
from fairseq_capsule.tables.runs import Places
from fairseq_capsule.tables.scales import SCALES, load_scale


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", nargs="?", type=label, metavar="TABLE", help="as duan-table2; without it, all are listed"
    )
    parser.add_argument(
        "--scale",
        type=label,
        default="paper",
        metavar="SCALE",
        help=f"{', '.join(SCALES)}: of which runs (default: %(default)s)",
    )
    parser.add_argument(
        "--runs", type=output_folder, default=Path("runs"), help="the folder of all runs (default: %(default)s)"
    )
    parser.add_argument("--out", type=output_folder, help="where to write it too (default: RUNS/SCALE/tables)")


def run(args: argparse.Namespace) -> None:
    if not args.table:
        for name in definitions.table_names():
            print(f"{name:16} {definitions.load_table(name).title}")
        return
    table, scale = definitions.load_table(args.table), load_scale(args.scale)
    places = Places(args.runs.resolve(), Path())
    results = gathering.gather(table, scale, places)
    print(printing.markdown(results))
    paths = printing.write(results, args.out or places.runs / scale.name / "tables")
    print("wrote " + ", ".join(map(str, paths)))
