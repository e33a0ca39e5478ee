"""The commands by which the scripts read and write a run folder.

    python -m fairseq_capsule_lab.runs SCRIPT plan-training|plan-evaluation|plan-plugin NAME=VALUE... [-- OVERRIDE...]
    python -m fairseq_capsule_lab.runs SCRIPT check|start|end|resume-update|adopt NAME=VALUE...

The plans print `NAME=VALUE` fields, an empty field, and the words of a command. Each ends with a NUL, so that a shell
reads any text unchanged. `check` refuses a working directory with links, pipes or devices; the scripts call it when
they have entered a run folder or a prepared folder. `start` opens the working directory and ends with status 3 if the
training is finished. An error is one line that begins with SCRIPT, with status 1.
"""

import datetime
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from fairseq_capsule.errors import UserError, one_line
from fairseq_capsule_lab.runs import evaluating, plugins
from fairseq_capsule_lab.runs.folder import RunFolder
from fairseq_capsule_lab.runs.settings import Settings

NOTHING_TO_DO = 3
PACKAGES = ("fairseq-capsule", "fairseq", "fairseq-fixed", "ve-fairseq", "torch", "numpy", "hydra-core")
RUN = RunFolder(Path("."))  # the scripts work inside it


def plan_training(asked: Mapping[str, str], overrides: Sequence[str]) -> int:
    from fairseq_capsule_lab.runs import training  # it imports Hydra, which takes longer than any other command

    found = training.plan(asked, overrides, os.environ)
    _print_plan(training.fields(found), found.command)
    return 0


def plan_evaluation(asked: Mapping[str, str], _: Sequence[str]) -> int:
    found = evaluating.plan(asked)
    _print_plan(evaluating.fields(found), found.average)
    return 0


def plan_plugin(asked: Mapping[str, str], _: Sequence[str]) -> int:
    found = plugins.plugin("--user-dir", asked["user-dir"], Path(asked["plugin"]))
    _print_plan({"plugin": str(found)}, ())
    return 0


def check(asked: Mapping[str, str], _: Sequence[str]) -> int:
    """Refuse the working directory, a run folder or a prepared folder, if others may have prepared it to do harm."""
    RUN.require_plain(asked["out"])
    return 0


def start(asked: Mapping[str, str], _: Sequence[str]) -> int:
    """Bind the working directory to a training and record its start. Standard input has the settings.

    Only the first node writes records.
    """
    first = asked["node"] == "0"
    if first:
        RUN.bind(Settings.from_json(sys.stdin.read()), asked["out"])
        recovered = RUN.recover_last(asked["out"])
        if recovered:
            print(f"checkpoint_last.pt was truncated by an interruption: continuing from {one_line(recovered.name)}")
    # If all updates are saved and it started again, fairseq would make one more update.
    if RUN.is_finished or 0 < int(asked["max_update"]) <= RUN.resume_update:
        if first and not RUN.is_finished:
            RUN.finish()
        print(f"{one_line(asked['out'])}: finished, nothing to do")
        return NOTHING_TO_DO
    if first:
        RUN.note_start(
            {
                "start": _now(),
                "command": asked["command"],
                "versions": _versions(),
                "git": _git(asked["plugin"]),
                "host": socket.gethostname(),
                "processor": f"{len(os.sched_getaffinity(0))} × {_processor()}",
                "gpus": _output("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"),
                **{name: asked[name] for name in ("processes", "batch", "data")},
                "seed": int(asked["seed"]),
            }
        )
    return 0


def end(asked: Mapping[str, str], _: Sequence[str]) -> int:
    """Record how the last start ended, and print the last update."""
    print(RUN.resume_update)
    RUN.note_end(_now(), asked["how"])
    if asked["how"] == "finished":
        RUN.finish()
    return 0


def resume_update(_: Mapping[str, str], __: Sequence[str]) -> int:
    print(RUN.resume_update)
    return 0


def adopt(asked: Mapping[str, str], _: Sequence[str]) -> int:
    """Put a trained checkpoint into its own run folder, as the baseline of tables."""
    RunFolder(Path(asked["out"])).adopt(Path(asked["checkpoint"]), asked["source"], asked["target"])
    return 0


COMMANDS: dict[str, Callable[[Mapping[str, str], Sequence[str]], int]] = {
    "plan-training": plan_training,
    "plan-evaluation": plan_evaluation,
    "plan-plugin": plan_plugin,
    "check": check,
    "start": start,
    "end": end,
    "resume-update": resume_update,
    "adopt": adopt,
}


def main(arguments: Sequence[str]) -> int:
    script, command, *words = arguments
    rest = words[words.index("--") + 1 :] if "--" in words else []
    asked: dict[str, Any] = dict(word.split("=", 1) for word in words[: words.index("--") if "--" in words else None])
    try:
        return COMMANDS[command](asked, rest)
    except UserError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    print(f"{script}: {one_line(reason)}", file=sys.stderr)
    return 1


def _print_plan(fields: Mapping[str, str], words: Iterable[str]) -> None:
    found = [*(f"{name}={value}" for name, value in fields.items()), "", *words]
    # surrogateescape writes bytes of a command line that are not UTF-8 unchanged.
    sys.stdout.buffer.write(b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in found))


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {distribution.metadata["Name"]: distribution.version for distribution in distributions()}
    return {"python": platform.python_version(), **{name: found[name] for name in PACKAGES if name in found}}


def _output(*command: str) -> list[str]:
    """The output lines of a command; an empty list if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return []


def _git(folder: str) -> str:
    described = _output("git", "-C", folder, "describe", "--always", "--abbrev=40", "--dirty", "--exclude", "*")
    return described[0] if described else "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
