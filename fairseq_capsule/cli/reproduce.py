"""`fairseq-capsule reproduce` (scripts/reproduce.sh): Snakemake runs what is missing of a table, then it is printed."""

import argparse
import contextlib
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import torch
import yaml

from fairseq_capsule.cli.arguments import MOST_SEED, input_file, label, output_folder, positive_int, whole_numbers
from fairseq_capsule.cli.table import require_figure, show
from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.definitions import REPOSITORY, load_table
from fairseq_capsule.tables.scales import SCALES
from fairseq_capsule.tables.targets import configured

WORKFLOW = REPOSITORY / "workflow"
GRACE = 1.0  # seconds that what was started has to end by itself
# A file is whole when it is there: neither its date nor the text of a rule makes a training begin anew.
ENGINE = ["--keep-going", "--rerun-incomplete", "--rerun-triggers", "input", "--nolock", "--quiet", "host"]


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
    parser.add_argument(
        "--launcher",
        type=label,
        default="local",
        metavar="local|slurm|kubernetes|PROFILE",
        help="one of workflow/profiles, or the folder of another profile of Snakemake's (default: %(default)s)",
    )
    parser.add_argument("--cores", type=positive_int, metavar="N", help="of this machine (default: all)")
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
    parser.add_argument("--rows", nargs="+", type=label, metavar="ROW", help="only these rows (default: all)")
    parser.add_argument("--figure", action="store_true", help="draw it too, where its definition says what over what")
    parser.add_argument("--report", action="store_true", help="write Snakemake's report with table, plots and logs too")
    parser.add_argument("--dry-run", action="store_true", help="print every command, with its GPUs and minutes")


def run(args: argparse.Namespace) -> None:
    load_table(args.table)  # which says where there are no tables at all
    profile, here = _profile(args.launcher)
    config = _config(args, torch.cuda.device_count() if here and not args.dry_run else None)
    wanted = configured(config, args.runs.absolute())
    require_figure(wanted.table, args.figure)
    if not args.dry_run:
        wanted.refuse_missing_corpora()
    words = _snakemake(args, profile, config)
    print(shlex.join(words), flush=True)
    if args.dry_run:
        with _no_trace(args.runs):
            failed = _supervised(words, here)
        if failed:
            raise UserError("Snakemake's dry run failed: see above")
        return
    args.runs.mkdir(parents=True, exist_ok=True)
    failed = _supervised(words, here)
    if args.report and not failed:
        path = wanted.places.runs / args.scale / "tables" / f"{args.table}.html"
        failed = _supervised([*words, "--report", str(path)], here)
        print(f"wrote {path}" if not failed else "no report: see above")
    show(args.table, args.scale, args.runs, figure=args.figure)
    if failed:
        raise UserError(f"some jobs failed: what is missing stands under the table, all in {args.runs}/.snakemake/log")


def _config(args: argparse.Namespace, gpus: Any) -> Dict[str, Any]:
    """What workflow/Snakefile is told."""
    config = {
        "table": args.table,
        "scale": args.scale,
        "seeds": args.seeds,
        "data": str(args.data.absolute()),
        "licensed": str(Path.cwd()),
        "rows": args.rows,
        "baseline": str(args.baseline.absolute()) if args.baseline else None,
        "gpus": gpus,
        "figure": args.figure or None,
        "logs": args.report or None,
    }
    return {name: value for name, value in config.items() if value is not None}


def _snakemake(args: argparse.Namespace, profile: Path, config: Dict[str, Any]) -> List[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
    command += ["--directory", str(args.runs.absolute()), "--profile", str(profile), *ENGINE]
    command += ["--cores", str(args.cores)] if args.cores else []
    command += ["--dry-run", "--printshellcmds"] if args.dry_run else []
    return [*command, "--config", *(f"{name}={json.dumps(value)}" for name, value in config.items())]


def _profile(launcher: str) -> Tuple[Path, bool]:
    """The profile's folder, and whether its jobs run on this machine.

    Raises:
        UserError: there is no Snakemake, or no such profile.
    """
    if not importlib.util.find_spec("snakemake"):
        raise UserError("snakemake is not installed: run 'make install', or pip install 'fairseq-capsule[tables]'")
    own = {path.name: path for path in (WORKFLOW / "profiles").iterdir()}
    profile = own.get(launcher, Path(launcher).absolute())
    try:
        settings = yaml.safe_load((profile / "config.yaml").read_text(encoding="utf-8")) or {}
        return profile, settings.get("executor", "local") == "local"
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        names = ", ".join(sorted(own))
        raise UserError(f"--launcher {launcher}: none of {names}, and no folder with a config.yaml") from error


@contextlib.contextmanager
def _no_trace(runs: Path) -> Iterator[None]:
    """Remove what Snakemake's dry run leaves, with the folder of runs and those above it where they were not there."""
    missing = [folder for folder in (runs / ".snakemake", runs, *runs.parents) if not folder.exists()]
    runs.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for folder in missing[-1:]:
            shutil.rmtree(folder)


def _supervised(words: List[str], here: bool) -> bool:
    """Run Snakemake; whether it failed. An interruption ends it and, where the jobs run here, all that it started."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    with subprocess.Popen(words, process_group=0) as process:  # so that the terminal's Ctrl-C comes here alone
        try:
            return process.wait() != 0
        except KeyboardInterrupt:
            _end(process, here)
            raise
        finally:
            for number, handler in zip(numbers, before):
                signal.signal(number, handler)


def _end(process: subprocess.Popen, here: bool) -> None:
    if not here:
        process.send_signal(signal.SIGINT)  # at which it cancels the jobs of a cluster
        process.wait()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        os.killpg(process.pid, signal.SIGKILL)
