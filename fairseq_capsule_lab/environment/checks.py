"""The checks of `fairseq-capsule doctor`.

Only the standard library is imported at the top, because every other package is what is checked. Each check
imports what it needs, so that one broken package does not hide the next.
"""

import importlib
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Callable, Dict, List

from fairseq_capsule import __version__
from fairseq_capsule_lab.environment.requirements import (
    FORKS,
    NAME,
    modules,
    pip_name,
    requirements,
    tested_pythons,
    unmet,
    version_of,
)
from fairseq_capsule_lab.processes import cores

OK, WARN, FAIL = "ok", "warn", "FAIL"

FIX_PLUGIN = "pip install -e . (in a clone of fairseq-capsule)"
FIX_CUDA = "pip install --force-reinstall torch, built for the driver's CUDA: https://pytorch.org/get-started/locally"

# Without these fairseq batches no sentences, reads no text and computes no BLEU.
COMPILED = ("fairseq.data.data_utils_fast", "fairseq.data.token_block_utils_fast", "fairseq.libbleu")


class Trouble(Exception):
    """A problem that is not a failed import, or that needs another fix than the one of the check."""

    def __init__(self, detail: str, fix: str = "", status: str = FAIL):
        super().__init__(detail)
        self.fix = fix
        self.status = status


@dataclass(frozen=True)
class Check:
    """`look` returns what it found, or raises an error if that is wrong; `fix` is the command that fixes it."""

    name: str
    look: Callable[[], str]
    fix: str = ""


@dataclass(frozen=True)
class Finding:
    name: str
    status: str
    detail: str
    fix: str = ""


def examine(check: Check) -> Finding:
    try:
        return Finding(check.name, OK, check.look())
    except Trouble as trouble:
        return Finding(check.name, trouble.status, str(trouble), trouble.fix or check.fix)
    except Exception as error:  # importing a broken package can raise anything
        reason = next(iter(str(error).splitlines()), "")
        return Finding(check.name, FAIL, f"{type(error).__name__}: {reason}", check.fix)


def checks() -> List[Check]:
    """All checks, in the order of the report."""
    build = f"{fix_fairseq()} (in a clone of fairseq: python setup.py build_ext --inplace)"
    return [
        Check(NAME, installation, FIX_PLUGIN),
        Check("Python", python_version, "install a Python of the tested versions and create a new environment with it"),
        Check("torch", torch_build, fix_torch()),
        Check("GPU", gpus, FIX_CUDA),
        Check("threads", thread_count),
        Check("checkpoints", weights_only),
        Check("fairseq", fairseq_interface, fix_fairseq()),
        Check("compiled modules", compiled, build),
        *(Check(name, library(name), f"pip install '{pip_name(name)}'") for name in _libraries()),
        Check("plugin", plugin, FIX_PLUGIN),
    ]


def versions() -> Dict[str, str]:
    """The versions of a bug report: the machine and the installed packages."""
    installed = {name: version_of(name) for name in (*FORKS, "torch", *_libraries())}
    machine = {"python": platform.python_version(), "platform": platform.platform(), NAME: __version__}
    return {**machine, **{name: version for name, version in installed.items() if version}}


def installation() -> str:
    place, installed = Path(__file__).parents[1], version_of(NAME)
    if not installed:
        fix = f"{FIX_PLUGIN}, to check them"
        raise Trouble(f"used by its path, {place}; requirements are not checked", fix, WARN)
    importlib.import_module("packaging.requirements")  # without it no requirement can be read
    if installed != __version__:
        raise Trouble(f"the code is version {__version__}, its metadata version {installed}: install it again")
    return f"{installed}, {place}"


def python_version() -> str:
    version, tested = platform.python_version(), tested_pythons()
    _refuse_unmet("Python", version)
    if tested and version.rpartition(".")[0] not in tested:
        raise Trouble(f"{version}; {NAME} is tested with {', '.join(tested)}", status=WARN)
    return f"{version}, {sys.executable}"


def torch_build() -> str:
    torch = importlib.import_module("torch")
    _refuse_unmet("torch", torch.__version__)
    return f"{torch.__version__}, {_built_for(torch)}"


def gpus() -> str:
    torch = _needed("torch")
    if torch.cuda.is_available():
        # A GPU that torch was not compiled for is "available", and fails only when it computes.
        torch.ones(1, device="cuda").add(1).item()
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    if not shutil.which("nvidia-smi"):
        return "none; training runs on the CPU"
    hidden = f"unset CUDA_VISIBLE_DEVICES, update the driver, or {FIX_CUDA}" if torch.version.cuda else FIX_CUDA
    raise Trouble(f"nvidia-smi is there, but torch, {_built_for(torch)}, sees no GPU", hidden, WARN)


def thread_count() -> str:
    number = cores()
    count = _needed("torch").get_num_threads()
    if count > number:
        raise Trouble(
            f"torch uses {count} on {number} cores, which is slower", f"export OMP_NUM_THREADS={number}", WARN
        )
    return f"torch uses {count} on {number} cores"


def weights_only() -> str:
    variable = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    if os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true"):
        raise Trouble(f"{variable} is set: code in a malicious checkpoint would run", f"unset {variable}", WARN)
    return "read as data; code in them is refused"


def fairseq_interface() -> str:
    installed = [f"{name} {version_of(name)}" for name in FORKS if version_of(name)]
    if len(installed) > 1:  # pip does not know that their files have the same names
        raise Trouble(f"{' and '.join(installed)} overwrite each other: keep one")
    fairseq = importlib.import_module("fairseq")
    if not fairseq.__file__:
        folder = list(fairseq.__path__)[0]
        raise Trouble(f"{folder} is not fairseq, but is found in its place", f"rename {folder}")
    place = Path(fairseq.__file__).parent
    if not hasattr(importlib.import_module("fairseq.models.transformer"), "TransformerConfig"):
        raise Trouble(f"{place} is too old: fairseq.models.transformer has no TransformerConfig")
    return f"{installed[0] if installed else fairseq.__version__}, {place}"


def compiled() -> str:
    _needed("fairseq")
    for module in COMPILED:
        importlib.import_module(module)
    return ", ".join(COMPILED)


def library(distribution: str) -> Callable[[], str]:
    def look() -> str:
        version = version_of(distribution)
        if not version:
            raise Trouble("not installed")
        for module in modules(distribution):
            importlib.import_module(module)
        _refuse_unmet(distribution, version)
        return version

    return look


def plugin() -> str:
    _needed("torch")
    _needed("fairseq")
    place = Path(str(importlib.import_module("fairseq_capsule.tasks").__file__)).parent.parent
    if "capsule_transformer" not in importlib.import_module("fairseq.models").MODEL_REGISTRY:
        raise Trouble(f"{place} was imported, but capsule_transformer is not registered")
    return f"capsule_transformer is registered from {place}"


def _libraries() -> List[str]:
    return [name for name in requirements() if name not in ("Python", "torch")]


def _needed(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:  # its own check reports the reason
        raise Trouble(f"cannot be checked without {module}", f"fix {module} first") from error


def _built_for(torch: ModuleType) -> str:
    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    return "built for ROCm" if getattr(torch.version, "hip", None) else "built for the CPU"


def _refuse_unmet(name: str, version: str) -> None:
    problem = unmet(name, version)
    if problem:
        raise Trouble(f"{version}; {problem}")


def fix_torch() -> str:
    return f"pip install '{pip_name('torch')}' (for the CPU build only: https://pytorch.org/get-started/locally)"


def fix_fairseq() -> str:
    """Install the one fork that the extra `fairseq` names for this machine. Another fork would delete its files."""
    fork = next((name for name in requirements("fairseq") if name in FORKS), "fairseq-fixed")
    install = f"pip install --no-cache-dir --no-build-isolation {pip_name(fork, 'fairseq')}"
    if fork != "ve-fairseq":
        install = f"pip install torch numpy cython setuptools wheel && {install} (needs a C++ compiler and Python.h)"
    return f"pip uninstall -y {' '.join(FORKS)} && {install}"
