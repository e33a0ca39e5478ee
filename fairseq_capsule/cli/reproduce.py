"""`fairseq-capsule reproduce` (scripts/reproduce.sh): runs what is missing of a paper's table, then prints it."""

import argparse
from pathlib import Path

import torch

from fairseq_capsule.cli.arguments import MOST_SEED, input_file, label, output_folder, whole_numbers
from fairseq_capsule.errors import UserError
from fairseq_capsule.tables import definitions, gathering, launching, planning, printing
from fairseq_capsule.tables.runs import Places
from fairseq_capsule.tables.scales import SCALES, load_scale


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=label, metavar="TABLE", help="as duan-table2; fairseq-capsule table lists them")
    parser.add_argument(
        "--scale", type=label, default="paper", metavar="SCALE", help=f"{', '.join(SCALES)} (default: %(default)s)"
    )
    parser.add_argument(
        "--seeds",
        type=whole_numbers(1, MOST_SEED, most_numbers=1000),
        default=[1],
        metavar="N,N,…",
        help="1,2,3 or 1-3 (default: 1)",
    )
    parser.add_argument("--launcher", choices=["local", "slurm"], default="local", help="(default: %(default)s)")
    parser.add_argument(
        "--baseline",
        type=input_file,
        metavar="CHECKPOINT",
        help="in the place of the Transformer that others start from or are taught by; prepare the data with its codes "
        "and dictionary",
    )
    parser.add_argument(
        "--data", type=output_folder, default=Path("data"), help="the folder of the prepared corpora (data)"
    )
    parser.add_argument("--runs", type=output_folder, default=Path("runs"), help="the folder of all runs (runs)")
    parser.add_argument(
        "--rows", nargs="+", type=label, metavar="ROW", help="only these rows and what they need (default: all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print every command, with its GPUs and hours")


def run(args: argparse.Namespace) -> None:
    table, scale = definitions.load_table(args.table), load_scale(args.scale)
    places = Places(args.runs.resolve(), args.data.resolve())
    here = args.launcher == "local" and not args.dry_run
    gpus = torch.cuda.device_count() if here else None
    jobs = planning.plan(table, scale, places, args.seeds, args.rows, args.baseline, gpus)
    if args.dry_run:
        print(planning.described(jobs))
        return
    planning.refuse_missing_folders(jobs)
    logs = places.runs / scale.name / "jobs"
    if args.launcher == "slurm":
        numbers = launching.launch_on_slurm(jobs, logs)
        print(
            f"{len(numbers)} jobs: {' '.join(numbers)}; then: fairseq-capsule table {table.name} --scale {scale.name}"
        )
        return
    launching.heed_signals()
    failed = launching.launch_here(jobs, logs)
    results = gathering.gather(table, scale, places)
    print(printing.markdown(results))
    paths = printing.write(results, places.runs / scale.name / "tables")
    print("wrote " + ", ".join(map(str, paths)))
    if failed:
        name, reason = next(iter(failed.items()))
        raise UserError(f"{len(failed)} of {len(jobs)} jobs failed, the first of them {name}: {reason}")
