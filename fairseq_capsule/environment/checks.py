"""The checks of `fairseq-capsule doctor`.

Only the standard library is imported at the top, because every other package is what is checked. Each check
imports what it needs, so that one broken package does not hide the next.
"""

import importlib
import os
import platform
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Callable, Dict, List, Optional

from fairseq_capsule import __version__
from fairseq_capsule.environment.requirements import (
    NAME,
    Unknown,
    modules,
    pip_name,
    python_is_accepted,
    required_python,
    requirements,
    tested_pythons,
    unmet,
    version_of,
)

OK, WARN, FAIL = "ok", "warn", "FAIL"

FIX_PLUGIN = "pip install -e . (in a clone of fairseq-capsule)"
FIX_CUDA = "pip install --force-reinstall torch, built for the driver's CUDA: https://pytorch.org/get-started/locally"
FIX_TOOLS = "apt-get install build-essential python3-dev (or: conda install -c conda-forge cxx-compiler make)"

# What the plugin uses of fairseq; fairseq 0.10 and older do not have it.
FAIRSEQ_INTERFACE = {
    "fairseq.dataclass": ["FairseqDataclass"],
    "fairseq.models.transformer": ["TransformerConfig", "TransformerEncoderBase", "TransformerDecoderBase"],
}


class Trouble(Exception):
    """A problem that is not a failed import, or that needs another fix than the one of the check."""

    def __init__(self, detail: str, fix: Optional[str] = None, status: str = FAIL):
        super().__init__(detail)
        self.fix = fix
        self.status = status


@dataclass(frozen=True)
class Check:
    """`look` returns what it found, or raises an error if that is wrong; `fix` is the command that fixes it."""

    name: str
    look: Callable[[], str]
    fix: str


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
    except Unknown as error:
        return Finding(check.name, FAIL, str(error), FIX_PLUGIN)
    except Exception as error:  # importing a broken package can raise anything
        reason = next(iter(str(error).splitlines()), "")
        return Finding(check.name, FAIL, f"{type(error).__name__}: {reason}", check.fix)


def checks() -> List[Check]:
    """All checks, in the order of the report. If the metadata is missing, no library is checked."""
    try:
        libraries = [name for name in requirements() if name != "torch"]
    except Unknown:  # the first check reports it
        libraries = []
    compile_again = fix_compiled()
    return [
        Check(NAME, installation, FIX_PLUGIN),
        Check("Python", python_version, "install a Python of the tested versions and create a new environment with it"),
        Check("torch", torch_build, fix_torch()),
        Check("GPU", gpus, FIX_CUDA),
        Check("torchaudio", torchaudio_version, "pip uninstall torchaudio"),
        Check("threads", thread_count, "export OMP_NUM_THREADS=1"),
        Check("checkpoints", weights_only, ""),
        Check("fairseq", fairseq_interface, fix_fairseq()),
        Check("data_utils_fast", compiled("fairseq.data.data_utils_fast", "batching sentences"), compile_again),
        Check("token_block_utils_fast", compiled("fairseq.data.token_block_utils_fast", "text blocks"), compile_again),
        Check("libbleu", compiled("fairseq.libbleu", "fairseq-generate's BLEU"), compile_again),
        Check("libnat", compiled("fairseq.libnat", "non-autoregressive models only", WARN), compile_again),
        *(Check(name, library(name), f"pip install '{pip_name(name)}'") for name in libraries),
        Check("plugin", plugin, FIX_PLUGIN),
        Check("build tools", build_tools, FIX_TOOLS),
    ]


def versions() -> Dict[str, str]:
    """The versions of a bug report: the machine and the installed packages."""
    try:
        libraries = list(requirements())
    except Unknown:
        libraries = []
    found = {"python": platform.python_version(), "platform": platform.platform(), NAME: __version__}
    for distribution in ["fairseq-fixed", "fairseq", "torch", "torchaudio", *libraries]:
        version = version_of(distribution)
        if version:
            found[distribution] = version
    return found


def installation() -> str:
    requirements()
    installed = version_of(NAME)
    if installed != __version__:
        raise Trouble(f"the code is version {__version__}, its metadata version {installed}: install it again")
    return f"{installed}, {Path(__file__).parents[1]}"


def python_version() -> str:
    found = platform.python_version()
    if not python_is_accepted(found):
        raise Trouble(f"{found}; {NAME} requires {required_python()}")
    if ".".join(found.split(".")[:2]) not in tested_pythons():
        raise Trouble(f"{found}; {NAME} is tested with {', '.join(tested_pythons())}", status=WARN)
    return f"{found}, {sys.executable}"


def torch_build() -> str:
    torch = importlib.import_module("torch")
    _refuse_unmet("torch", torch.__version__)
    return f"{torch.__version__}, {_built_for(torch)}"


def gpus() -> str:
    torch = _needed("torch")
    driver = shutil.which("nvidia-smi")
    if torch.cuda.is_available():
        # A GPU that torch was not compiled for is "available", and fails only when it computes.
        torch.ones(1, device="cuda").add(1).item()
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    if driver and not torch.version.cuda:
        raise Trouble(f"{driver} reports an NVIDIA GPU, but torch is {_built_for(torch)}", status=WARN)
    if torch.version.cuda and driver:
        fix = f"unset CUDA_VISIBLE_DEVICES, update the driver, or {FIX_CUDA}"
        raise Trouble(f"torch is {_built_for(torch)}, but sees no GPU: hidden, or the driver is too old", fix, WARN)
    return "none; training runs on the CPU"


def torchaudio_version() -> str:
    found, torch_version = version_of("torchaudio"), version_of("torch")
    if not found:
        return "none; only fairseq's speech models need it"
    if torch_version and _minor(found) != _minor(torch_version):
        return f"{found}, built for another torch than {torch_version}: harmless, translation does not import it"
    return found


def thread_count() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = _needed("torch").get_num_threads()
    if count > cores:
        raise Trouble(f"torch uses {count} on {cores} cores, which is slower", f"export OMP_NUM_THREADS={cores}", WARN)
    return f"torch uses {count} on {cores} cores"


def weights_only() -> str:
    variable = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    if os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true"):
        raise Trouble(f"{variable} is set: code in a malicious checkpoint would run", f"unset {variable}", WARN)
    return "read as data; code in them is refused"


def fairseq_interface() -> str:
    fairseq = importlib.import_module("fairseq")
    if not fairseq.__file__:
        folder = list(fairseq.__path__)[0]
        raise Trouble(f"{folder} is not fairseq, but is found in its place", f"rename {folder}")
    place = Path(fairseq.__file__).parent
    installed = [f"{name} {version_of(name)}" for name in ("fairseq-fixed", "fairseq") if version_of(name)]
    if len(installed) > 1:
        fix = f"pip uninstall -y fairseq fairseq-fixed && {fix_fairseq()}"
        raise Trouble(f"{' and '.join(installed)} overwrite each other in {place}", fix)
    for module, names in FAIRSEQ_INTERFACE.items():
        missing = [name for name in names if not hasattr(importlib.import_module(module), name)]
        if missing:
            raise Trouble(f"{place} is too old: {module} has no {', '.join(missing)}")
    return f"{installed[0] if installed else fairseq.__version__}, {place}"


def compiled(module: str, purpose: str, status: str = FAIL) -> Callable[[], str]:
    def look() -> str:
        _needed("torch")  # libnat needs its libraries
        _needed("fairseq")
        try:
            return Path(str(importlib.import_module(module).__file__)).name
        except ImportError as error:
            raise Trouble(f"{error}; it is needed for {purpose}", status=status) from error

    return look


def library(distribution: str) -> Callable[[], str]:
    def look() -> str:
        found = version_of(distribution)
        if not found:
            raise Trouble("not installed")
        for module in modules(distribution):
            importlib.import_module(module)
        _refuse_unmet(distribution, found)
        return found

    return look


def plugin() -> str:
    _needed("torch")
    _needed("fairseq")
    place = Path(str(importlib.import_module("fairseq_capsule").__file__)).parent
    if "capsule_transformer" not in importlib.import_module("fairseq.models").MODEL_REGISTRY:
        raise Trouble(f"{place} was imported, but capsule_transformer is not registered")
    return f"capsule_transformer is registered from {place}"


def build_tools() -> str:
    compilers = [name for name in ("c++", "g++", "clang++") if shutil.which(name)]
    missing: List[str] = [] if compilers else ["C++ compiler"]
    missing += [] if shutil.which("make") else ["make"]
    missing += [] if Path(sysconfig.get_path("include"), "Python.h").exists() else ["Python.h"]
    if missing:
        raise Trouble(f"no {', no '.join(missing)}; needed where fairseq has no wheel and must be built", status=WARN)
    return f"{shutil.which(compilers[0])}, {shutil.which('make')}, Python.h"


def _needed(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:  # its own check reports the reason
        raise Trouble(f"cannot be checked without {module}", f"fix {module} first") from error


def _built_for(torch: ModuleType) -> str:
    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    return "built for ROCm" if getattr(torch.version, "hip", None) else "built for the CPU"


def _refuse_unmet(distribution: str, version: str) -> None:
    problem = unmet(distribution, version)
    if problem:
        raise Trouble(f"{version}; {problem}")


def _minor(version: str) -> str:
    """A version up to its second number: 2.13.0+cpu → 2.13."""
    return ".".join(version.split(".")[:2])


def fix_torch() -> str:
    return f"pip install '{pip_name('torch')}' (for the CPU build only: https://pytorch.org/get-started/locally)"


def fix_fairseq() -> str:
    fairseq = pip_name("fairseq-fixed", "fairseq")
    return f"pip install torch numpy cython setuptools wheel && pip install --no-build-isolation {fairseq}"


def fix_compiled() -> str:
    return (
        "pip install --no-build-isolation --no-deps --no-cache-dir --force-reinstall --no-binary fairseq-fixed "
        f"{pip_name('fairseq-fixed', 'fairseq')} (in a clone of fairseq: python setup.py build_ext --inplace)"
    )
