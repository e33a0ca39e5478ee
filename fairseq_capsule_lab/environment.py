"""The checks of `fairseq-capsule doctor`. Each returns what there is, or raises an error if that is wrong.

Only the standard library is imported at the top, because every other package is what is checked, and a broken one must
not hide the next. What is required stands in the metadata of the installation.
"""

import importlib
import os
import platform
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Optional

from capsule_routing import __version__
from fairseq_capsule_lab.processes import cores

NAME = "fairseq-capsule"
FORKS = ("fairseq", "fairseq-fixed", "ve-fairseq")  # distributions that are imported as `fairseq`
FIX_PLUGIN = "pip install -e . (in a clone of fairseq-capsule)"
FIX_CUDA = "pip install --force-reinstall torch, built for the driver's CUDA: https://pytorch.org/get-started/locally"
# Without these fairseq batches no sentences, reads no text and computes no BLEU.
COMPILED = ("fairseq.data.data_utils_fast", "fairseq.data.token_block_utils_fast", "fairseq.libbleu")
UNSAFE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
# Names of modules of distributions that have others.
OTHER_NAMES = {"hydra-core": "hydra", "markdown-it-py": "markdown_it", "pyyaml": "yaml"}


class Trouble(Exception):
    """A problem that is not a failed import, or that needs another fix than the one of the check."""

    def __init__(self, detail: str, fix: str = "", status: str = "FAIL"):
        super().__init__(detail)
        self.fix, self.status = fix, status


def installation() -> str:
    place, installed = Path(__file__).parent, version_of(NAME)
    if not installed:
        detail = f"used by its path, {place}; requirements are not checked"
        raise Trouble(detail, f"{FIX_PLUGIN}, to check them", "warn")
    importlib.import_module("packaging.requirements")  # without it no requirement can be read
    if installed != __version__:
        raise Trouble(f"the code is version {__version__}, its metadata version {installed}: install it again")
    return f"{installed}, {place}"


def python_version() -> str:
    version = platform.python_version()
    _require("Python", version)
    classifiers = (metadata.metadata(NAME).get_all("Classifier") or []) if version_of(NAME) else []
    tested = [text.rpartition(" ")[2] for text in classifiers if re.search(r" Python :: 3\.\d+$", text)]
    if tested and version.rpartition(".")[0] not in tested:
        raise Trouble(f"{version}; {NAME} is tested with {', '.join(tested)}", status="warn")
    return f"{version}, {sys.executable}"


def torch_build() -> str:
    torch = importlib.import_module("torch")
    return f"{_require('torch', torch.__version__)}, {_platform_of(torch)}"


def gpus() -> str:
    torch = _after("torch")
    if torch.cuda.is_available():
        # A GPU that torch was not compiled for is "available", and fails only when it computes.
        torch.ones(1, device="cuda").add(1).item()
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    if not shutil.which("nvidia-smi"):
        return "none; training runs on the CPU"
    fix = f"unset CUDA_VISIBLE_DEVICES, update the driver, or {FIX_CUDA}" if torch.version.cuda else FIX_CUDA
    raise Trouble(f"nvidia-smi is there, but torch, {_platform_of(torch)}, sees no GPU", fix, "warn")


def thread_count() -> str:
    count, number = _after("torch").get_num_threads(), cores()
    detail = f"torch uses {count} on {number} cores"
    if count > number:
        raise Trouble(f"{detail}, which is slower", f"export OMP_NUM_THREADS={number}", "warn")
    return detail


def weights_only() -> str:
    if os.environ.get(UNSAFE, "0").lower() in ("1", "y", "yes", "true"):
        raise Trouble(f"{UNSAFE} is set: code in a malicious checkpoint would run", status="warn")
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


def compiled_modules() -> str:
    _after("fairseq")
    return ", ".join(importlib.import_module(module).__name__ for module in COMPILED)


def library(distribution: str) -> str:
    version = version_of(distribution)
    if not version:
        raise Trouble("not installed")
    importlib.import_module(OTHER_NAMES.get(distribution, distribution.replace("-", "_")))
    return _require(distribution, version)


def audio() -> str:
    """torchaudio, which the wheel of fairseq requires. Only fairseq's speech tasks need it."""
    if not version_of("torchaudio"):
        return "not installed; translation does not need it"
    try:
        return str(importlib.import_module("torchaudio").__version__)
    except Exception as error:
        detail = f"{version_of('torchaudio')} does not load beside this torch, so transformers' Trainer does not either"
        raise Trouble(detail, "pip uninstall -y torchaudio", "warn") from error


def plugin() -> str:
    _after("torch")
    _after("fairseq")
    place = Path(str(importlib.import_module("fairseq_capsule.tasks").__file__)).parent.parent
    if "capsule_transformer" not in importlib.import_module("fairseq.models").MODEL_REGISTRY:
        raise Trouble(f"{place} was imported, but capsule_transformer is not registered")
    return f"capsule_transformer is registered from {place}"


def requirements(extra: str = "") -> dict[str, Any]:
    """The versions that this package accepts of Python and of what it requires here, with an extra if one is given."""
    try:
        requirement = importlib.import_module("packaging.requirements").Requirement
        package = metadata.metadata(NAME)
    except ImportError:  # no packaging, or no metadata: PackageNotFoundError is one
        return {}
    texts = [f"Python{package['Requires-Python']}", *(package.get_all("Requires-Dist") or [])]
    applies = [one for one in map(requirement, texts) if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {one.name: one.specifier for one in applies}


def version_of(distribution: str) -> Optional[str]:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _require(name: str, version: str) -> str:
    accepted = requirements().get(name)
    if accepted and not accepted.contains(version, prereleases=True):
        raise Trouble(f"{version}; {NAME} requires {accepted}")
    return version


def _after(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as error:  # its own check reports the reason
        raise Trouble(f"cannot be checked without {module}", f"fix {module} first") from error


def _platform_of(torch: Any) -> str:
    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    return "built for ROCm" if getattr(torch.version, "hip", None) else "built for the CPU"
