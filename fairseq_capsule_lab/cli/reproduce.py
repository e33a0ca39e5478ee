"""`fairseq-capsule reproduce` (scripts/reproduce.sh): run the missing steps of a table, then print it."""

import argparse
import importlib.util
import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import List

import torch

from fairseq_capsule_lab.cli.arguments import MOST_SEED, input_file, label, output_folder, positive_int, whole_numbers
from fairseq_capsule_lab.cli.table import add_table_arguments, require_figure, show, write_page
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.processes import cores, run_in_group
from fairseq_capsule_lab.stages import Folder
from fairseq_capsule_lab.tables.commands import Step, missing
from fairseq_capsule_lab.tables.definitions import REPOSITORY, load_table
from fairseq_capsule_lab.tables.runs import Places
from fairseq_capsule_lab.tables.scales import load_scale
from fairseq_capsule_lab.tables.steps import work_of

WORKFLOW = REPOSITORY / "workflow"
CORES = 8  # of a training on a cluster, unless its profile says otherwise
# An existing file is complete: neither its date nor a changed rule starts a training again.
ENGINE = ["--keep-going", "--rerun-incomplete", "--rerun-triggers", "input", "--nolock", "--quiet", "host"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        type=label,
        metavar="TABLE",
        help="such as duan-table2, or a YAML file; fairseq-capsule table lists all",
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--seeds",
        type=whole_numbers(1, MOST_SEED, most_numbers=1000),
        default=[1],
        metavar="N,N,…",
        help="1,2,3 or 1-3 (default: 1)",
    )
    parser.add_argument(
        "--launcher",
        type=label,
        default="local",
        metavar="local|slurm|PROFILE",
        help="this machine, or the folder of a Snakemake profile (default: %(default)s)",
    )
    parser.add_argument("--cores", type=positive_int, metavar="N", help="of this machine (default: all)")
    parser.add_argument(
        "--baseline",
        type=input_file,
        metavar="CHECKPOINT",
        help="use it in place of the Transformer that rows start from or learn from; prepare the data with its codes "
        "and dictionary",
    )
    parser.add_argument(
        "--data", type=output_folder, default=Path("data"), help="folder of prepared corpora (default: %(default)s)"
    )
    parser.add_argument("--rows", nargs="+", type=label, metavar="ROW", help="only these rows (default: all)")
    parser.add_argument(
        "--report", action="store_true", help="also write a page with the table, its plot and the logs of trainings"
    )
    parser.add_argument("--dry-run", action="store_true", help="print every command with its GPUs, memory and minutes")
    parser.epilog = "--user-dir DIR names a plugin of your own that defines the models of rows (docs/extending.md)."


def run(args: argparse.Namespace) -> None:
    table = load_table(args.table)  # raises an error where there are no tables
    require_figure(table, args.figure)
    profile = None if args.launcher == "local" else _profile(args.launcher)
    plugin = Path(os.path.abspath(args.user_dir)) if args.user_dir else None
    places = Places(args.runs.absolute(), args.data.absolute(), Path.cwd(), plugin)
    gpus = None if profile or args.dry_run else torch.cuda.device_count()
    threads = args.cores or (CORES if profile else cores())
    scale = load_scale(args.scale)
    work = work_of(table, scale, places, args.seeds, args.rows, args.baseline, gpus, threads)
    work.refuse_wrong_plugins()
    steps = work.steps()
    if args.dry_run:
        for step in missing(steps, work.cells, places.runs):
            print(step)
        return
    work.refuse_missing_corpora()
    folder = Folder(str(args.runs))
    try:
        with folder.lock():
            if args.baseline:
                work.adopt(args.baseline)
            steps = missing(steps, work.cells, places.runs)
            for step in steps:
                (places.runs / step.output).unlink(missing_ok=True)  # of a measurement of something else
            if not steps:
                print("nothing to be done: all steps were done before")
                failed = False
            elif profile:
                failed = _on_cluster(steps, places.runs / args.scale / "tables", table.name, profile, folder)
            else:
                failed = bool(folder.run(*(step.stage(folder) for step in steps), keep_going=True))
    except SystemExit as ended:  # a signal to end
        raise KeyboardInterrupt from ended
    show(args.table, args.scale, args.runs, figure=args.figure)
    if args.report:
        logs = [places.runs / name / "train.log" for name in work.trainings]
        print(f"wrote {write_page(table, places.runs / args.scale / 'tables', logs)}")
    if failed:
        raise LabError("some steps failed: the notes under the table say which; the logs are in the folder of each run")


def _profile(launcher: str) -> Path:
    """The folder of a Snakemake profile.

    Raises:
        LabError: there is no such profile, or Snakemake is not installed.
    """
    own = {path.name: path for path in (WORKFLOW / "profiles").iterdir()}
    profile = own.get(launcher, Path(launcher).absolute())
    if not (profile / "config.yaml").is_file():
        names = ", ".join(["local", *sorted(own)])
        raise LabError(f"--launcher {launcher}: none of {names}, and no folder with a config.yaml")
    if not importlib.util.find_spec("snakemake"):
        raise LabError("snakemake is not installed: run 'make install', or pip install 'fairseq-capsule[slurm]'")
    return profile


def _on_cluster(steps: List[Step], tables: Path, name: str, profile: Path, folder: Folder) -> bool:
    """Run steps by Snakemake, and return whether one failed. An interruption cancels the jobs."""
    listed = tables / f"{name}.steps.json"
    tables.mkdir(parents=True, exist_ok=True)
    write_whole(listed, json.dumps([step.as_json() for step in steps], indent=1).encode())
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
    words += ["--directory", str(folder.path), "--profile", str(profile), *ENGINE]
    words += ["--config", f"steps={json.dumps(str(listed))}"]
    print(shlex.join(words), flush=True)
    return run_in_group(words, signal.SIGINT, patience=None, pass_fds=[folder.descriptor]) != 0
