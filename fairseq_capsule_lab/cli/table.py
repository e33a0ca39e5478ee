"""`fairseq-capsule table`: a table with our figures beside the paper's. `reproduce` first runs its missing steps."""

import argparse
import os
from pathlib import Path

from fairseq_capsule_lab.cli.arguments import MOST_SEED, input_file, label, output_folder, positive_int, whole_numbers
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.processes import cores
from fairseq_capsule_lab.stages import Folder
from fairseq_capsule_lab.tables import definitions
from fairseq_capsule_lab.tables.scales import SCALES, load_scale

CORES = 8  # of a training on a cluster, unless its profile says otherwise


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    text = "such as duan-table2, or a YAML file (default: list all)"
    parser.add_argument("table", nargs="?", type=label, metavar="TABLE", help=text)
    _add_places(parser)
    text = "also write the learning curves of its rows, with bands over seeds"
    parser.add_argument("--curves", action="store_true", help=text)
    parser.add_argument("--out", type=output_folder, help="folder for the table's files (default: RUNS/SCALE/tables)")


def add_reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "such as duan-table2, or a YAML file; fairseq-capsule table lists all"
    add("table", type=label, metavar="TABLE", help=text)
    _add_places(parser)
    numbers = whole_numbers(1, MOST_SEED, most_numbers=1000)
    add("--seeds", type=numbers, default=[1], metavar="N,N,…", help="1,2,3 or 1-3 (default: 1)")
    text = "this machine, or the folder of a Snakemake profile (default: %(default)s)"
    add("--launcher", type=label, default="local", metavar="local|slurm|PROFILE", help=text)
    add("--cores", type=positive_int, metavar="N", help="of this machine (default: all)")
    text = "use it in place of the Transformer that rows start from or learn from; prepare the data with its codes "
    add("--baseline", type=input_file, metavar="CHECKPOINT", help=f"{text}and dictionary")
    text = "folder of prepared corpora (default: %(default)s)"
    add("--data", type=output_folder, default=Path("data"), help=text)
    add("--rows", nargs="+", type=label, metavar="ROW", help="only these rows (default: all)")
    text = "also write a page with the table, its plot and the logs of trainings"
    add("--report", action="store_true", help=text)
    add("--dry-run", action="store_true", help="print every command with its GPUs, memory and minutes")
    parser.set_defaults(curves=False, out=None)
    parser.epilog = "--user-dir DIR names a plugin of your own that defines the models of rows (docs/extending.md)."


def _add_places(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--scale", type=label, default="paper", metavar="SCALE", help=f"{', '.join(SCALES)} (default: %(default)s)")
    add("--runs", type=output_folder, default=Path("runs"), help="folder of all runs (default: %(default)s)")
    add("--figure", action="store_true", help="also draw the table, if its definition says how")


def run_table(args: argparse.Namespace) -> None:
    writing = [f"--{name}" for name in ("figure", "curves", "out") if getattr(args, name)]
    if writing and not args.table:
        raise LabError(f"{' '.join(writing)}: no table to write; name a TABLE")
    written = args.runs / args.scale / "tables" / f"{args.table}.md"
    can_print = not definitions.CONFIGS.is_dir() and args.scale in SCALES and written.is_file()
    if args.table and can_print and not writing:
        print(written.read_text(encoding="utf-8"))  # an installation without the definitions
    elif args.table:
        _show(args, _table(args))
    else:
        for name in definitions.table_names():
            print(f"{name:16} {definitions.load_table(name).title}")


def run_reproduce(args: argparse.Namespace) -> None:
    import torch

    from fairseq_capsule_lab.pages.table import write_table_page
    from fairseq_capsule_lab.tables import commands
    from fairseq_capsule_lab.tables.runs import Places
    from fairseq_capsule_lab.tables.steps import work_of

    table = _table(args)  # raises an error where there are no tables
    profile = None if args.launcher == "local" else commands.cluster_profile(args.launcher)
    plugin = Path(os.path.abspath(args.user_dir)) if args.user_dir else None
    places = Places(args.runs.absolute(), args.data.absolute(), Path.cwd(), plugin)
    gpus = None if profile else torch.cuda.device_count()
    threads = args.cores or (CORES if profile else cores())
    work = work_of(table, load_scale(args.scale), places, args.seeds, args.rows, args.baseline, gpus, threads)
    work.refuse_wrong_plugins()
    steps = work.steps()
    if args.dry_run:
        for step in commands.missing(steps, work.cells, places.runs):
            print(step)
        return
    work.refuse_missing_corpora()
    folder, tables = Folder(str(args.runs)), places.runs / args.scale / "tables"
    try:
        with folder.lock():
            if args.baseline:
                work.adopt(args.baseline)
            steps = commands.missing(steps, work.cells, places.runs)
            for step in steps:
                (places.runs / step.output).unlink(missing_ok=True)  # of a measurement of something else
            if not steps:
                print("nothing to be done: all steps were done before")
                failed = False
            elif profile:
                failed = commands.run_on_cluster(steps, tables / f"{table.name}.steps.json", profile, folder)
            else:
                stages = (step.stage(folder, f"{n} of {len(steps)}") for n, step in enumerate(steps, start=1))
                failed = bool(folder.run(*stages, keep_going=True))
    except SystemExit as ended:  # a signal to end
        raise KeyboardInterrupt from ended
    _show(args, table)
    if args.report:
        logs = [places.runs / name / "train.log" for name in work.trainings]
        print(f"wrote {write_table_page(table, tables, logs)}")
    if failed:
        raise LabError("some steps failed: the notes under the table say which; the logs are in the folder of each run")


def _table(args: argparse.Namespace) -> definitions.Table:
    table = definitions.load_table(args.table)
    if args.figure and not table.figure:
        raise LabError(f"--figure: the definition of {table.name} does not say what to draw; omit the option")
    return table


def _show(args: argparse.Namespace, table: definitions.Table) -> None:
    """Print a table from its results so far, and write it."""
    from fairseq_capsule_lab.tables import printing, results
    from fairseq_capsule_lab.tables.runs import Places

    places, scale = Places(args.runs.resolve(), Path()), load_scale(args.scale)
    figures = results.gather(table, scale, places)
    print(printing.markdown(figures))
    folder = args.out or places.runs / scale.name / "tables"
    paths = printing.write(figures, folder, args.figure)
    paths += printing.curves(table, scale, places).write(folder) if args.curves else []
    print("wrote " + ", ".join(map(str, paths)))
