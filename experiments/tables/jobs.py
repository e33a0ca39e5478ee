"""A step of a table: one command, with what it makes, what it needs, and its resources; steps on a cluster.

Names of files are relative to the folder of runs, in which the commands work. A step's output is complete when it
exists, and the scripts continue an interrupted step, so an interruption loses at most the running step.
"""

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterable, List, Sequence, Set

from capsule_routing.errors import UserError, counted
from experiments.tables.definitions import REPOSITORY
from fairseq_capsule_lab import processes
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.stages import Folder, Stage

THREADS = [f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")]
WORKFLOW = REPOSITORY / "experiments/workflow"
# An existing file is complete: neither its date nor a changed rule starts a training again.
ENGINE = ["--keep-going", "--rerun-incomplete", "--rerun-triggers", "input", "--nolock", "--quiet", "host"]


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes:
        kind: its rule on a cluster.
        output: the file that it makes, and that is complete.
        needs: the files that it reads.
        prints: the output is the last line that the command prints.
        threads, gpus, megabytes, minutes: its resources; the last two are guesses, for a cluster.
        gpu_hours, cpu_hours, gigabytes: its cost, as far as experiments/tables/costs.py counts it.
    """

    kind: str
    output: str
    words: Sequence[str]
    log: str
    needs: Sequence[str] = ()
    prints: bool = False
    threads: int = 1
    gpus: int = 0
    megabytes: int = 4000
    minutes: int = 60
    gpu_hours: float = 0
    cpu_hours: float = 0
    gigabytes: float = 0

    @property
    def line(self) -> str:
        """The command for a shell in the folder of runs."""
        words, log, output = shlex.join(self.words), shlex.quote(self.log), shlex.quote(self.output)
        if self.prints:
            return f"{words} 2> {log} | tail -n 1 > {output}.part && mv {output}.part {output}"
        return f"{words} > {log} 2>&1"

    def __str__(self) -> str:
        return f"{self.line}  # gpu={self.gpus} mem_mb={self.megabytes} runtime={self.minutes}"

    def is_done(self, folder: Path) -> bool:
        path = folder / self.output
        return path.exists() and not (self.prints and path.stat().st_size == 0)  # a shell made it and was killed

    def stage(self, folder: Folder, place: str) -> Stage:
        """The step on this machine; its `place` among the steps, such as `5 of 14`, is printed before it."""

        def make(unfinished: Path, log: BinaryIO) -> None:
            print(f"{place}: {self.output}", flush=True)
            processes.show(self.words, folder.path, self.output if self.prints else self.log)
            # The commands of this Python come first, even if no environment is active.
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
            env = {**os.environ, "PATH": path, **dict.fromkeys(THREADS, str(self.threads))}
            with open(unfinished, "wb") if self.prints else contextlib.nullcontext(log) as printed:
                options: Dict[str, Any] = {"stdout": printed, "stderr": log, "cwd": folder.path, "env": env}
                status = processes.run_in_group(self.words, pass_fds=[folder.descriptor], **options)
            if self.prints:
                unfinished.write_bytes(b"".join(unfinished.read_bytes().splitlines(keepends=True)[-1:]))
            if status:
                raise subprocess.CalledProcessError(status, list(self.words))

        return Stage(self.output, make, self.needs, self.log)


def missing(steps: Iterable[Step], cells: Iterable[str], folder: Path) -> List[Step]:
    """The steps that must run for the cells, in order.

    A step runs if a cell or another step that runs needs its output, and the output does not exist. A comparison or
    measurement also runs again after a step whose output it reads.
    """
    makers = {step.output: step for step in steps}
    names = list(cells)
    outputs: Set[str] = set()
    while names:
        step = makers.get(names.pop())
        if step and step.output not in outputs and not step.is_done(folder):
            outputs.add(step.output)
            names += step.needs
    for step in makers.values():
        if step.prints and outputs.intersection(step.needs):
            outputs.add(step.output)
    return [step for step in makers.values() if step.output in outputs]


def total(steps: Sequence[Step]) -> str:
    """The cost of steps, in one line."""
    trainings = [step for step in steps if step.kind == "train"]
    uncounted = sum(not step.gpu_hours and not step.cpu_hours for step in trainings)
    gpu_hours, cpu_hours, gigabytes = (
        fsum(getattr(step, name) for step in steps) for name in ("gpu_hours", "cpu_hours", "gigabytes")
    )
    parts = [counted(len(trainings), "training")]
    parts += [f"{uncounted} of them not counted: no pairs of their corpus in configs/scales"] if uncounted else []
    parts += [f"{gpu_hours:,.0f} hours of one H100"] if gpu_hours else []
    parts += [f"{cpu_hours:,.1f} hours of a CPU core", f"{gigabytes:,.0f} GB of disk"]
    return ", ".join(parts)


def cluster_profile(launcher: str) -> Path:
    """The folder of a Snakemake profile; raises a UserError if it, or Snakemake itself, is missing."""
    own = {path.name: path for path in (WORKFLOW / "profiles").iterdir()}
    profile = own.get(launcher, Path(launcher).absolute())
    if not (profile / "config.yaml").is_file():
        names = ", ".join(["local", *sorted(own)])
        raise UserError(f"--launcher {launcher}: none of {names}, and no folder with a config.yaml")
    if not importlib.util.find_spec("snakemake"):
        raise UserError("snakemake is not installed: run 'make install', or pip install 'fairseq-capsule[slurm]'")
    return profile


def run_on_cluster(steps: Sequence[Step], listed: Path, profile: Path, folder: Folder) -> bool:
    """Run steps by Snakemake, which reads them from the file `listed`, and return whether one failed.

    An interruption cancels the jobs.
    """
    listed.parent.mkdir(parents=True, exist_ok=True)
    write_whole(listed, json.dumps([{**asdict(step), "line": step.line} for step in steps], indent=1).encode())
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
    words += ["--directory", str(folder.path), "--profile", str(profile), *ENGINE]
    words += ["--config", f"steps={json.dumps(str(listed))}"]
    processes.show(words)
    return processes.run_in_group(words, signal.SIGINT, patience=None, pass_fds=[folder.descriptor]) != 0
