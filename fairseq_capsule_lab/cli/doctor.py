"""`fairseq-capsule doctor`: one line for each requirement of the package, and how to fix what is wrong."""

import contextlib
import functools
import json
import logging
import platform
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import NamedTuple

from capsule_routing import __version__
from fairseq_capsule_lab import environment
from fairseq_capsule_lab.cli.commands import command, flag
from fairseq_capsule_lab.environment import FIX_CUDA, FIX_PLUGIN, FORKS, NAME

FIX_TORCH = "pip install 'torch{}' (for the CPU build only: https://pytorch.org/get-started/locally)"
FIX_PYTHON = "install a Python of the tested versions and create a new environment with it"
FIX_BUILD = "in a clone of fairseq: python setup.py build_ext --inplace"


class Diagnosis(NamedTuple):
    """A line of the report; `status` is ok, warn or FAIL."""

    name: str
    status: str
    detail: str
    fix: str = ""


@command("doctor", "")
@flag("--json", "Print one JSON object instead of the table.")
def doctor(args: Namespace) -> int:
    """Check each requirement of this package, and state how to fix what is wrong. The exit status is then 1."""
    findings = []
    for check in checks():
        with _quiet_imports():
            finding = diagnose(*check)
        findings.append(finding)
        if not args.json:
            print(_line(finding), flush=True)  # the next check may take seconds
    failed = [finding.name for finding in findings if finding.status == "FAIL"]
    if args.json:
        report = {"ok": not failed, "findings": [row._asdict() for row in findings], "versions": versions()}
        print(json.dumps(report))
    else:
        listed = ", ".join(f"{name} {version}" for name, version in versions().items())
        print(f"\nversions, to copy into a bug report: {listed}")
        print(f"{len(failed)} to fix: {', '.join(failed)}" if failed else "nothing to fix")
    return 1 if failed else 0


def checks() -> list[tuple[str, Callable[[], str], str]]:
    """What is checked, its check, and the command that fixes it, in the order of the report."""
    required = environment.requirements()
    libraries = [(name, version) for name, version in required.items() if name not in ("Python", "torch")]
    library = environment.library
    return [
        (NAME, environment.installation, FIX_PLUGIN),
        ("Python", environment.python_version, FIX_PYTHON),
        ("torch", environment.torch_build, FIX_TORCH.format(required.get("torch", ""))),
        ("GPU", environment.gpus, FIX_CUDA),
        ("threads", environment.thread_count, ""),
        ("checkpoints", environment.weights_only, f"unset {environment.UNSAFE}"),
        ("fairseq", environment.fairseq_interface, fix_fairseq()),
        ("compiled modules", environment.compiled_modules, f"{fix_fairseq()} ({FIX_BUILD})"),
        ("torchaudio", environment.audio, ""),
        *((name, functools.partial(library, name), f"pip install '{name}{version}'") for name, version in libraries),
        ("plugin", environment.plugin, FIX_PLUGIN),
    ]


def diagnose(name: str, check: Callable[[], str], fix: str) -> Diagnosis:
    try:
        return Diagnosis(name, "ok", check())
    except environment.Trouble as trouble:
        return Diagnosis(name, trouble.status, str(trouble), trouble.fix or fix)
    except Exception as error:  # importing a broken package can raise anything
        reason = next(iter(str(error).splitlines()), "")
        return Diagnosis(name, "FAIL", f"{type(error).__name__}: {reason}", fix)


def fix_fairseq() -> str:
    """Install the one fork that the extra `fairseq` names for this machine. Another fork would delete its files."""
    forks = ((name, version) for name, version in environment.requirements("fairseq").items() if name in FORKS)
    fork, version = next(forks, ("fairseq-fixed", ""))
    install = f"pip install --no-cache-dir --no-build-isolation {fork}{version}"
    if fork != "ve-fairseq":
        install = f"pip install torch numpy cython setuptools wheel && {install} (needs a C++ compiler and Python.h)"
    return f"pip uninstall -y {' '.join(FORKS)} && {install}"


def versions() -> dict[str, str]:
    """The versions of a bug report: the machine and the installed packages."""
    machine = {"python": platform.python_version(), "platform": platform.platform(), NAME: __version__}
    names = (*FORKS, "torch", *environment.requirements())
    return machine | {name: version for name in names if (version := environment.version_of(name))}


def _line(finding: Diagnosis) -> str:
    line = f"{finding.status:<4}  {finding.name:<22}  {finding.detail}"
    return f"{line}\n{'':<28}  fix: {finding.fix}" if finding.fix else line


@contextlib.contextmanager
def _quiet_imports() -> Iterator[None]:
    """Keep what packages print during their import out of the table and of the JSON."""
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
