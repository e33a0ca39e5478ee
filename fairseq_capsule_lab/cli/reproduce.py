"""`fairseq-capsule reproduce` (scripts/reproduce.sh): run what is missing of a table with Snakemake, then print it."""

import argparse
import contextlib
import fcntl
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, Tuple

import torch
import yaml

from fairseq_capsule_lab.cli.arguments import MOST_SEED, input_file, label, output_folder, positive_int, whole_numbers
from fairseq_capsule_lab.cli.table import add_table_arguments, require_figure, show
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.tables.definitions import REPOSITORY, load_table
from fairseq_capsule_lab.tables.targets import configured

WORKFLOW = REPOSITORY / "workflow"
GRACE = 0.5  # seconds for processes to end before they are killed
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
        metavar="local|slurm|kubernetes|PROFILE",
        help="one of workflow/profiles, or the folder of another Snakemake profile (default: %(default)s)",
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
        "--report", action="store_true", help="also write Snakemake's report with table, plots and logs"
    )
    parser.add_argument("--dry-run", action="store_true", help="print every command with its GPUs and minutes")
    parser.epilog = "--user-dir DIR names a plugin of your own that defines the models of rows (docs/extending.md)."


def run(args: argparse.Namespace) -> None:
    table = load_table(args.table)  # raises an error where there are no tables
    profile, here = _profile(args.launcher)
    config = {
        "table": str(table.source) if args.table.endswith(".yaml") else args.table,
        "scale": args.scale,
        "seeds": args.seeds,
        "data": str(args.data.absolute()),
        "here": str(Path.cwd()),
        "plugin": args.user_dir and os.path.abspath(args.user_dir),
        "rows": args.rows,
        "baseline": args.baseline and str(args.baseline.absolute()),
        "gpus": torch.cuda.device_count() if here and not args.dry_run else None,
        "figure": args.figure or None,
        "logs": args.report or None,
    }
    wanted = configured(config, args.runs.absolute())
    require_figure(wanted.table, args.figure)
    wanted.refuse_wrong_plugins()
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
    words += ["--directory", str(args.runs.absolute()), "--profile", str(profile), *ENGINE]
    words += ["--cores", str(args.cores)] if args.cores else []
    words += ["--dry-run", "--printshellcmds"] if args.dry_run else []
    words += ["--config", *(f"{name}={json.dumps(value)}" for name, value in config.items() if value is not None)]
    if args.dry_run:
        print(shlex.join(words), flush=True)
        with _no_trace(args.runs):
            failed = _supervised(words, here)
        if failed:
            raise LabError("Snakemake's dry run failed: see above")
        return
    wanted.refuse_missing_corpora()
    print(shlex.join(words), flush=True)
    args.runs.mkdir(parents=True, exist_ok=True)
    failed = _supervised(words, here)
    reported = True
    if args.report and not failed:
        path = wanted.places.runs / args.scale / "tables" / f"{table.name}.html"
        reported = not _supervised([*words, "--report", str(path)], here)
        print(f"wrote {path}" if reported else "no report: see above")
    show(args.table, args.scale, args.runs, figure=args.figure)
    if failed:
        raise LabError(
            f"some jobs failed: the notes under the table say which; all logs are in {args.runs}/.snakemake/log"
        )
    if not reported:
        raise LabError("all jobs succeeded, but Snakemake could not write its report: see above the table")


def _profile(launcher: str) -> Tuple[Path, bool]:
    """Return the profile's folder, and whether its jobs run on this machine.

    Raises:
        LabError: Snakemake is not installed, or there is no such profile.
    """
    if not importlib.util.find_spec("snakemake"):
        raise LabError("snakemake is not installed: run 'make install', or pip install 'fairseq-capsule[tables]'")
    own = {path.name: path for path in (WORKFLOW / "profiles").iterdir()}
    profile = own.get(launcher, Path(launcher).absolute())
    try:
        settings = yaml.safe_load((profile / "config.yaml").read_text(encoding="utf-8")) or {}
        return profile, settings.get("executor", "local") == "local"
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        names = ", ".join(sorted(own))
        raise LabError(f"--launcher {launcher}: none of {names}, and no folder with a config.yaml") from error


@contextlib.contextmanager
def _no_trace(runs: Path) -> Iterator[None]:
    """Remove what Snakemake's dry run writes, and the folder of runs with its parents if they are new."""
    written = [path for path in (runs / ".snakemake", runs / ".lock") if not path.exists()]
    missing = [folder for folder in (runs, *runs.parents) if not folder.exists()]
    runs.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if not _is_running(runs):  # otherwise the files belong to a run that was started meanwhile
            for path in written:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not empty: another run has left results
                for folder in missing:
                    folder.rmdir()


def _is_running(runs: Path) -> bool:
    """Return whether a run holds the lock of workflow/Snakefile."""
    try:
        with open(runs / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _supervised(words: List[str], here: bool) -> bool:
    """Run Snakemake and return whether it failed. An interruption ends it and, if jobs run here, their processes."""
    # nohup starts this process with SIGHUP ignored.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    with subprocess.Popen(words, process_group=0) as process:  # so that the terminal sends Ctrl-C only to this process
        try:
            return process.wait() != 0
        except KeyboardInterrupt:
            _end(process, here)
            raise
        finally:
            for number, handler in zip(numbers, before):
                signal.signal(number, handler)


def _end(process: subprocess.Popen, here: bool) -> None:
    import psutil  # which Snakemake brings

    if not here:
        process.send_signal(signal.SIGINT)  # Snakemake then cancels the jobs of a cluster
        process.wait()
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        # torchrun starts its workers in sessions of their own, which a signal to the group does not reach.
        started = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for each in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.terminate()
        for each in psutil.wait_procs(started, GRACE)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in (*each.children(recursive=True), each):
                    child.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
