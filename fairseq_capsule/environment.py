"""What `fairseq-capsule doctor` looks at.

Imports only the standard library: every other package is what is in question here. Each check imports what it needs by
itself, so that one broken package hides nothing about the next.
"""

import importlib
import os
import platform
import re
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Callable, Dict, List, Optional, Tuple

OK, WARN, FAIL = "ok", "warn", "FAIL"

FAIRSEQ = "fairseq-fixed==0.12.3.1"
MEND_PYTHON = "install Python 3.12 and make a new environment: python3.12 -m venv .venv"
MEND_TORCH = "pip install 'torch>=2.6' (for its CPU build alone see https://pytorch.org/get-started/locally)"
MEND_CUDA = "pip install --force-reinstall torch, for the driver's CUDA: see https://pytorch.org/get-started/locally"
MEND_FAIRSEQ = f"pip install torch numpy cython setuptools wheel && pip install --no-build-isolation {FAIRSEQ}"
MEND_COMPILED = (
    "pip install --no-build-isolation --no-deps --no-cache-dir --force-reinstall --no-binary fairseq-fixed "
    f"{FAIRSEQ} (in a clone of fairseq: python setup.py build_ext --inplace)"
)
MEND_PLUGIN = "pip install --no-deps --force-reinstall -e . (in a clone of fairseq-capsule)"
MEND_TOOLS = "apt-get install build-essential python3-dev (or: conda install -c conda-forge cxx-compiler make)"

# what the plugin builds on; fairseq 0.10 and older have none of it
FAIRSEQ_INTERFACE = {
    "fairseq.dataclass": ["FairseqDataclass"],
    "fairseq.models.transformer": ["TransformerConfig", "TransformerEncoderBase", "TransformerDecoderBase"],
}

# distribution → (module, oldest version that will do)
PACKAGES = {
    "numpy": ("numpy", (1, 21)),
    "hydra-core": ("hydra", (1, 3)),
    "omegaconf": ("omegaconf", (2, 3)),
    "rouge-score": ("rouge_score", (0, 1, 2)),
    "sacrebleu": ("sacrebleu", (2, 3)),
    "sacremoses": ("sacremoses", (0, 1)),
    "subword-nmt": ("subword_nmt", (0, 3, 8)),
    "jieba": ("jieba", (0, 42)),
    "matplotlib": ("matplotlib", (3, 7)),
    "pyyaml": ("yaml", (5, 1)),
    "submitit": ("submitit", (1, 5)),
    "tqdm": ("tqdm", (4,)),
}


class Trouble(Exception):
    """Something wrong that is no failed import, or that another command than the check's own mends."""

    def __init__(self, detail: str, mend: Optional[str] = None, status: str = FAIL):
        super().__init__(detail)
        self.mend = mend
        self.status = status


@dataclass(frozen=True)
class Check:
    """`look` returns what it found, or raises where that is wrong; `mend` is the command that mends it."""

    name: str
    look: Callable[[], str]
    mend: str


@dataclass(frozen=True)
class Finding:
    name: str
    status: str
    detail: str
    mend: str = ""


def examine(check: Check) -> Finding:
    try:
        return Finding(check.name, OK, check.look())
    except Trouble as trouble:
        return Finding(check.name, trouble.status, str(trouble), trouble.mend or check.mend)
    except Exception as error:  # whatever a broken package raises when it is imported
        reason = next(iter(str(error).splitlines()), "")
        return Finding(check.name, FAIL, f"{type(error).__name__}: {reason}", check.mend)


def versions() -> Dict[str, str]:
    """What to name in a bug report: the machine and the installed packages."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for distribution in ["fairseq-capsule", "fairseq-fixed", "fairseq", "torch", "torchaudio", *PACKAGES]:
        version = _version(distribution)
        if version:
            found[distribution] = version
    return found


def python_version() -> str:
    found = platform.python_version()
    if sys.version_info < (3, 9):
        raise Trouble(f"{found}, older than 3.9")
    if sys.version_info[:2] not in [(3, 11), (3, 12)]:
        raise Trouble(f"{found}; fairseq-fixed is made for 3.11 and 3.12", status=WARN)
    return f"{found}, {sys.executable}"


def torch_build() -> str:
    torch = importlib.import_module("torch")
    if _release(torch.__version__) < (2, 6):
        raise Trouble(f"{torch.__version__}, older than 2.6")
    return f"{torch.__version__}, {_built_for(torch)}"


def gpus() -> str:
    torch = _needed("torch")
    driver = shutil.which("nvidia-smi")
    if torch.cuda.is_available():
        # A GPU that torch was not compiled for is "available", and fails only when it computes.
        torch.ones(1, device="cuda").add(1).item()
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    if driver and not torch.version.cuda:
        raise Trouble(f"{driver} tells of an NVIDIA GPU, but torch is {_built_for(torch)}", status=WARN)
    if torch.version.cuda and driver:
        mend = f"unset CUDA_VISIBLE_DEVICES, update the driver, or {MEND_CUDA}"
        raise Trouble(f"torch is {_built_for(torch)}, but sees no GPU: hidden, or the driver is too old", mend, WARN)
    return "none; training runs on the CPU"


def torchaudio_version() -> str:
    found, torch_version = _version("torchaudio"), _version("torch")
    if not found:
        return "none; only fairseq's speech models need it"
    if torch_version and _release(found)[:2] != _release(torch_version)[:2]:
        return f"{found}, made for another torch than {torch_version}: harmless, translation never imports it"
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
        raise Trouble(f"{folder} is no fairseq, but stands before the installed one", f"rename {folder}")
    place = Path(fairseq.__file__).parent
    installed = [f"{name} {_version(name)}" for name in ("fairseq-fixed", "fairseq") if _version(name)]
    if len(installed) > 1:
        mend = f"pip uninstall -y fairseq fairseq-fixed && {MEND_FAIRSEQ}"
        raise Trouble(f"{' and '.join(installed)} overwrite each other in {place}", mend)
    for module, names in FAIRSEQ_INTERFACE.items():
        lacking = [name for name in names if not hasattr(importlib.import_module(module), name)]
        if lacking:
            raise Trouble(f"{place} is too old: {module} has no {', '.join(lacking)}")
    return f"{installed[0] if installed else fairseq.__version__}, {place}"


def compiled(module: str, purpose: str, status: str = FAIL) -> Callable[[], str]:
    def look() -> str:
        _needed("torch")  # its libraries have to be there before libnat
        _needed("fairseq")
        try:
            return Path(str(importlib.import_module(module).__file__)).name
        except ImportError as error:
            raise Trouble(f"{error}; it is there for {purpose}", status=status) from error

    return look


def package(distribution: str) -> Callable[[], str]:
    module, oldest = PACKAGES[distribution]

    def look() -> str:
        importlib.import_module(module)
        found = _version(distribution)
        if found and _release(found) < oldest:
            raise Trouble(f"{found}, older than {_dotted(oldest)}")
        return found or "of unknown version"

    return look


def plugin() -> str:
    _needed("torch")
    _needed("fairseq")
    place = Path(str(importlib.import_module("fairseq_capsule").__file__)).parent
    if "capsule_transformer" not in importlib.import_module("fairseq.models").MODEL_REGISTRY:
        raise Trouble(f"{place} was imported, but fairseq knows no capsule_transformer")
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
    except Exception as error:  # its own check says what is wrong with it
        raise Trouble(f"cannot be looked at without {module}", f"mend {module} first") from error


def _built_for(torch: ModuleType) -> str:
    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    return "built for ROCm" if getattr(torch.version, "hip", None) else "built for the CPU"


def _version(distribution: str) -> Optional[str]:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _release(version: str) -> Tuple[int, ...]:
    """The numbers that a version starts with: 2.13.0+cpu → (2, 13, 0)."""
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


def _dotted(release: Tuple[int, ...]) -> str:
    return ".".join(str(number) for number in release)


CHECKS = [
    Check("Python", python_version, MEND_PYTHON),
    Check("torch", torch_build, MEND_TORCH),
    Check("GPU", gpus, MEND_CUDA),
    Check("torchaudio", torchaudio_version, "pip uninstall torchaudio"),
    Check("threads", thread_count, "export OMP_NUM_THREADS=1"),
    Check("checkpoints", weights_only, ""),
    Check("fairseq", fairseq_interface, MEND_FAIRSEQ),
    Check("data_utils_fast", compiled("fairseq.data.data_utils_fast", "batching sentences"), MEND_COMPILED),
    Check("token_block_utils_fast", compiled("fairseq.data.token_block_utils_fast", "blocks of text"), MEND_COMPILED),
    Check("libbleu", compiled("fairseq.libbleu", "fairseq-generate's BLEU"), MEND_COMPILED),
    Check("libnat", compiled("fairseq.libnat", "non-autoregressive models only", WARN), MEND_COMPILED),
    *(Check(name, package(name), f"pip install '{name}>={_dotted(oldest)}'") for name, (_, oldest) in PACKAGES.items()),
    Check("plugin", plugin, MEND_PLUGIN),
    Check("build tools", build_tools, MEND_TOOLS),
]
