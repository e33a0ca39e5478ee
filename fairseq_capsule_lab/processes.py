"""Commands of other programs: their environment, their output, the versions of their packages."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from capsule_routing.errors import UserError

FORKS = ("fairseq", "fairseq-fixed", "ve-fairseq")  # distributions that are imported as `fairseq`

# Text is UTF-8, and Python does not import a `json.py` of the folder in which it works.
PLAIN = {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONSAFEPATH": "1"}

PATIENCE = 35  # seconds for a program to end; torchrun kills its workers, which are in groups of their own, after 30


def require_tools(*tools: str) -> None:
    """Raise a UserError if a command is not installed."""
    for tool in tools:
        if not shutil.which(tool):
            remedy = "run 'make install' in a clone, or activate the environment that has it (extra fairseq)"
            raise UserError(f"{tool} is not installed: {remedy}")


def cores() -> int:
    """Return the number of cores that this process may use. Variables that limit threads do not change it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    installed = {}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


@contextlib.contextmanager
def handling(signals: Iterable[int], handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Call a function for signals; not for ignored ones: under nohup the end of the terminal stays ignored."""
    numbers = [number for number in signals if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, original in before.items():
            signal.signal(number, original)


def show(words: Sequence[str], folder: Path | None = None, output: str = "", gpus: str = "") -> None:
    """Print a command before it runs, in a form to paste, to standard error, as a shell with `set -x` does.

    Args:
        folder: where the command runs, if its words are relative to another folder than that of the user.
        output: the file that gets its standard output.
        gpus: the value of CUDA_VISIBLE_DEVICES, if GPUs were chosen.
    """
    line = f"CUDA_VISIBLE_DEVICES={gpus} " if gpus else ""
    line += shlex.join(words)
    if output:
        line += f" > {shlex.quote(output)}"
    if folder:
        line = f"(cd {shlex.quote(str(folder))} && {line})"
    sys.stderr.write(f"+ {line}\n")  # in one piece: several threads may show commands
    sys.stderr.flush()


def output_of(words: Sequence[str], log: BinaryIO, folder: Path, environment: Mapping[str, str]) -> Iterator[bytes]:
    """Run a command and yield the lines of its output; its errors go to the log. It ends with this process.

    Raises:
        CalledProcessError: it failed.
    """
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
    ) as child:
        assert child.stdout is not None
        try:
            yield from child.stdout
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, words)


def run_in_group(
    words: Sequence[str], first: int = signal.SIGTERM, patience: float | None = PATIENCE, **options: Any
) -> int:
    """Run a command in a process group of its own, and return its status. With this process, the group ends too.

    Args:
        first: the signal that asks the group to end.
        patience: the seconds after which it is killed, or None; at once after a second interruption.
        options: of `subprocess.Popen`.
    """
    early: list[int] = []  # signals; an exception within Popen would leave the started command alone
    with handling((signal.SIGHUP, signal.SIGINT, signal.SIGTERM), lambda number, _: early.append(number)):
        process = subprocess.Popen(words, process_group=0, stdin=subprocess.DEVNULL, **options)
    with process:
        try:
            for number in early:
                signal.raise_signal(number)
            return process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, first)
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt, SystemExit):
                process.wait(patience)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def command_line(program: str, words: Iterable[str]) -> str:
    """Return a command with its words, each quoted for a shell."""
    return " ".join([program, *("'{}'".format(word.replace("'", "'\\''")) for word in words)])
