"""Loading of fairseq's checkpoints. All commands, of fairseq and of this package, read them through `load`.

It reads a file with torch's restricted unpickler, and checks its options before fairseq sees them (`config`), because
fairseq evaluates several options as Python. Only this module patches fairseq:

- In `checkpoint_utils` the name `torch` becomes a stand-in whose `load` is ours. torch itself stays as it is.
- In `distributed.utils` too: there, `load` reads the checkpoint that rank 0 has loaded and broadcasts when several
  processes resume. Since torch 2.6 fairseq's own call fails at the config in it.
- `file_utils.load_archive_file` unpacks tar archives for the hub. fairseq would write anywhere.
"""

import functools
import os
import pickle
import shutil
import tarfile
import tempfile
import types
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Union

import numpy as np
import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.distributed import utils as distributed_utils

from capsule_routing.errors import UserError, one_line
from fairseq_capsule.checkpoints.safe_options import check_config

FAIRSEQ_LOAD_ARCHIVE = file_utils.load_archive_file


class NumberType:
    """What `numpy.dtype` in a pickle becomes. numpy's own type trusts the state that a file gives it."""

    order = "="

    def __init__(self, code: str, *_: Any):
        self.code = code

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]


class Numbers(np.ndarray):
    """What an array in a pickle becomes: `--eval-bleu` adds arrays to the metrics that fairseq saves.

    It is filled once, by numpy's reader of plain bytes, which refuses objects. It is saved as an array of numpy.
    """

    def __new__(cls, *_: Any) -> "Numbers":
        return super().__new__(cls, 0)

    def __setstate__(self, state: Any) -> None:
        if self.size:  # a tensor could use the memory that a second state frees
            raise ValueError("an array with two contents")
        _, shape, kind, fortran, content = state
        array: Any = np.frombuffer(content, kind.order + kind.code).reshape(shape, order="F" if fortran else "C")
        super().__setstate__(array.__reduce__()[2])

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


# What torch's unpickler uses for names in a pickle, in addition to its own. The second name is that of numpy 1.
CLASSES: List[Any] = [
    Namespace,
    (Numbers, "numpy._core.multiarray._reconstruct"),
    (Numbers, "numpy.core.multiarray._reconstruct"),
    (Numbers, "numpy.ndarray"),
    (NumberType, "numpy.dtype"),
]


class _StandIn(types.ModuleType):
    """A module with another `load`."""

    def __init__(self, module: types.ModuleType, load: Callable[..., Any]):
        super().__init__(module.__name__)
        self._module, self.load = module, load

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def install() -> None:
    """Patch fairseq. A second call changes nothing."""
    load_broadcast = functools.partial(torch.load, weights_only=False)  # from rank 0, where `load` has checked it
    for module, function in ((checkpoint_utils, load), (distributed_utils, load_broadcast)):
        if not isinstance(module.torch, _StandIn):
            module.torch = _StandIn(module.torch, function)
    file_utils.load_archive_file = _load_archive


def load(file: Any, *_: Any, **__: Any) -> Dict[str, Any]:
    """Read a checkpoint from an open file to the CPU, in place of `torch.load`.

    A UserError says that it is damaged, that it contains something other than data, or that an option breaks a rule.
    """
    name = getattr(file, "name", "checkpoint")
    try:
        with torch.serialization.safe_globals(CLASSES):
            state: Dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # torch's message explains how to load the file anyway
        problem = "it is not a checkpoint, or contains something other than data, which was not run"
        raise UserError(f"{name}: not loaded: {problem}") from error
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")[:100]
        problem = f"the file cannot be read, is damaged or not a checkpoint ({reason})"
        raise UserError(f"{name}: not loaded: {problem}; copy it again or train again") from error
    try:
        check_config(state)
    except UserError as error:
        raise UserError(f"{name}: not loaded: {error}") from error
    return state


def read_checkpoint(path: Union[str, Path]) -> Dict[str, Any]:
    """Read a checkpoint to the CPU, as fairseq does. Errors as in `load`; a missing file raises an OSError."""
    install()
    try:
        state: Dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(path))
        return state
    except (LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: it is not a checkpoint of fairseq ({type(error).__name__}: {error})") from error


def read_options(path: Union[str, Path]) -> Dict[str, Any]:
    """Read a checkpoint as it is in the file, options in plain dicts and Namespaces. Errors as in `read_checkpoint`."""
    with open(path, "rb") as file:
        return load(file)


def model_options(state: Mapping[str, Any]) -> Any:
    """Return the options of the model of a checkpoint: a config, a mapping or a Namespace; {} if there are none."""
    config = state.get("cfg")
    return (config.get("model") if isinstance(config, Mapping) else None) or state.get("args") or {}


def _load_archive(archive_file: str) -> Any:
    """Return the folder of a model for the hub, as fairseq does. A tar archive is unpacked in its place."""
    try:
        path = file_utils.cached_path(archive_file, cache_dir=None)  # downloads a URL
    except OSError:
        raise UserError(f"{archive_file}: no such file or folder, and no URL that can be fetched") from None
    if not os.path.isdir(path):
        _unpack(archive_file, path)
    return FAIRSEQ_LOAD_ARCHIVE(archive_file)


def _unpack(name: str, path: str) -> None:
    """Replace a tar archive by a folder with its files; if one folder contains all of them, by that folder."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as beside:
        folder = Path(beside) / "files"
        folder.mkdir()
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise UserError(f"{name}: not unpacked ({error}); name a folder, or a tar archive of a model") from error
        inside = list(folder.iterdir())
        os.remove(path)
        shutil.move(inside[0] if len(inside) == 1 and inside[0].is_dir() else folder, path)
