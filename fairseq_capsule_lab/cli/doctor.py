"""`fairseq-capsule doctor`: one line for each requirement of the package, and how to fix what is wrong."""

import contextlib
import functools
import importlib
import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from capsule_routing import __version__
from capsule_routing.errors import UserError
from capsule_routing.text.languages import EXTRAS, bleu, bleu_tokeniser
from fairseq_capsule_lab.cli.commands import command
from fairseq_capsule_lab.processes import FORKS, versions

NAME = "fairseq-capsule"
FIX_TORCH = "pip install --force-reinstall torch, built for the driver's CUDA: https://pytorch.org/get-started/locally"
# Without these fairseq batches no sentences, reads no text and computes no BLEU.
COMPILED = ("fairseq.data.data_utils_fast", "fairseq.data.token_block_utils_fast", "fairseq.libbleu")


class Finding(NamedTuple):
    """What a check found; `status` is ok, info, warn or FAIL."""

    status: str
    detail: str
    fix: str = ""


@command("doctor", "")
def doctor() -> int:
    """Check each requirement of this package, and state how to fix what is wrong. The exit status is then 1."""
    required = requirements()
    checks: dict[str, Callable[[], Finding]]
    checks = {name: functools.partial(library, name, accepted) for name, accepted in required.items()}
    checks |= {"Python": python_version, "GPU": gpus, "fairseq": fairseq_and_plugin}
    checks |= {f"BLEU of {language}": functools.partial(bleu_of, language) for language in ("ja", "ko")}
    failed = []
    for name, check in checks.items():
        try:
            with contextlib.redirect_stdout(sys.stderr):  # a package may print during its import
                found = check()
        except Exception as error:  # importing a broken package can raise anything
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            found = Finding("FAIL", reason, FIX_TORCH if name == "GPU" else fix_fairseq())
        line = f"{found.status:<4}  {name:<16}  {found.detail}"
        print(f"{line}\n{'':<24}fix: {found.fix}" if found.fix else line, flush=True)  # the next may take seconds
        if found.status == "FAIL":
            failed.append(name)
    installed = {"python": platform.python_version(), "platform": platform.platform(), NAME: __version__}
    installed |= versions((*FORKS, *required))
    listed = ", ".join(f"{name} {version}" for name, version in installed.items())
    print(f"\nversions, to copy into a bug report: {listed}")
    print(f"{len(failed)} to fix: {', '.join(failed)}" if failed else "nothing to fix")
    return 1 if failed else 0


def requirements(extra: str = "", python: str = "") -> dict[str, SpecifierSet]:
    """The accepted versions of Python and of what this package, or an extra of it, requires on this machine.

    Args:
        python: the version of another Python, such as 3.12.
    """
    package = metadata.metadata(NAME)
    texts = [f"Python{package['Requires-Python']}", *package.get_all("Requires-Dist", [])]
    values = {"extra": extra, **({"python_version": python} if python else {})}
    applies = [one for one in map(Requirement, texts) if one.marker is None or one.marker.evaluate(values)]
    return {one.name: one.specifier for one in applies}


def tested_pythons() -> list[str]:
    """The versions of Python that this package is tested with, the oldest first."""
    classifiers = metadata.metadata(NAME).get_all("Classifier", [])
    return [text.rpartition(" ")[2] for text in classifiers if " Python :: 3." in text]


def fork(python: str = "") -> str:
    """The one fork that the extra `fairseq` names for this machine, with its version; empty if fairseq runs on none."""
    return next((f"{name}{version}" for name, version in requirements("fairseq", python).items() if name in FORKS), "")


def python_version() -> Finding:
    version, accepted, tested = platform.python_version(), requirements()["Python"], tested_pythons()
    if version.rpartition(".")[0] in tested:
        return Finding("ok", f"{version}, {sys.executable}")
    fix = "create a new environment with a Python of these versions"
    status = "warn" if accepted.contains(version) else "FAIL"
    return Finding(status, f"{version}; {NAME} is tested with {', '.join(tested)}", fix)


def library(name: str, accepted: SpecifierSet) -> Finding:
    version = versions([name]).get(name)
    if version and accepted.contains(version, prereleases=True):
        return Finding("ok", version)
    detail = f"{version or 'not installed'}; {NAME} requires {accepted}"
    return Finding("FAIL", detail, f"pip install '{name}{accepted}'")


def gpus() -> Finding:
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        torch.ones(1, device="cuda").add(1).item()  # a GPU that torch was not compiled for fails only here
        return Finding("ok", ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count()))))
    if not shutil.which("nvidia-smi"):
        return Finding("ok", "none; training runs on the CPU")
    fix = f"unset CUDA_VISIBLE_DEVICES, update the driver, or {FIX_TORCH}"
    return Finding("warn", f"nvidia-smi is there, but torch {torch.__version__} sees no GPU", fix)


def fairseq_and_plugin() -> Finding:
    installed = [f"{name} {version}" for name, version in versions(FORKS).items()]
    if len(installed) > 1:  # pip does not know that their files have the same names
        return Finding("FAIL", f"{' and '.join(installed)} overwrite each other: keep one", fix_fairseq())
    if not installed and not importlib.util.find_spec("fairseq"):
        detail = "not installed; only training and translating with fairseq need it"
        if not fork():
            detail += "; on this Python its import and the commands of Hydra fail"
        return Finding("info", detail, fix_fairseq())
    fairseq = importlib.import_module("fairseq")
    for module in (*COMPILED, "fairseq_capsule"):
        importlib.import_module(module)
    version = installed[0] if installed else fairseq.__version__
    return Finding("ok", f"{version}, {fairseq.__path__[0]}; the plugin is registered")


def bleu_of(language: str) -> Finding:
    """Whether BLEU of a language can be computed. Only its own users need the library of its tokeniser."""
    name = bleu_tokeniser(language)
    try:
        bleu(language)
    except UserError:
        fix = f"pip install '{NAME}[{EXTRAS[name]}]'"
        return Finding("info", f"{name}: not installed; only scores of this language need it", fix)
    return Finding("ok", name)


def fix_fairseq() -> str:
    """Install the fork for this machine. Another fork would delete its files."""
    name = fork()
    if not name:
        newest = [python for python in tested_pythons() if fork(python)][-1]
        return f"for fairseq take an environment with Python {newest}: uv venv --python {newest}"
    remove = f"pip uninstall -y {' '.join(FORKS)}"
    if name.startswith("ve-fairseq"):
        return f"{remove} && pip install --no-cache-dir {name}"
    compiler = "" if shutil.which("c++") else "install a C++ compiler and Python.h (Debian: g++ python3-dev), then "
    build = "pip install torch numpy cython setuptools wheel && pip install --no-cache-dir --no-build-isolation"
    return f"{compiler}{remove} && {build} {name}"
