"""Loading of fairseq's checkpoints. All commands, of fairseq and of this package, read them through `load`.

It reads a file with torch's restricted unpickler, and checks its options before fairseq sees them (`safe_options`):
fairseq evaluates several options as Python. This module patches fairseq, as `tasks/stopping.py` alone does too:

- In `checkpoint_utils` the name `torch` becomes a stand-in whose `load` is ours. torch itself stays as it is.
- In `distributed.utils` too: there, `load` reads the checkpoint that rank 0 has loaded and broadcasts when several
  processes resume. Since torch 2.6 fairseq's own call fails at the config in it.
- `file_utils.load_archive_file` unpacks tar archives for the hub. fairseq would write anywhere.
- `checkpoint_utils.load_model_ensemble_and_task` compares the words and the direction of each model with those of the
  task that is to use it (`belonging`). A task of fairseq has no hook that sees both.
"""

import functools
import os
import pickle
import shutil
import tarfile
import tempfile
import types
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from fairseq import checkpoint_utils, file_utils, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf, overwrite_args_by_name
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import meters
from fairseq.tasks.translation import TranslationTask

from capsule_routing.errors import UserError, one_line
from fairseq_capsule.checkpoints.belonging import Belonging, of_checkpoint, of_data, of_task, refuse_other
from fairseq_capsule.checkpoints.safe_options import check_config

FAIRSEQ_LOAD_ARCHIVE = file_utils.load_archive_file
FAIRSEQ_LOAD_MODELS = checkpoint_utils.load_model_ensemble_and_task


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


# fairseq's meters: numbers with a name. Its older versions saved them as objects of a module `fairseq.meters`.
METERS = (meters.AverageMeter, meters.SumMeter, meters.ConcatTensorMeter, meters.TimeMeter, meters.StopwatchMeter)

# What torch's unpickler uses for names in a pickle, in addition to its own. The second name is that of numpy 1.
CLASSES: List[Any] = [
    Namespace,
    *METERS,
    *((meter, f"fairseq.meters.{meter.__name__}") for meter in METERS),
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
    checkpoint_utils.load_model_ensemble_and_task = _load_models


def load(file: Any, *_: Any, **__: Any) -> Dict[str, Any]:
    """Read a checkpoint from an open file to the CPU, in place of `torch.load`.

    A UserError says that it is damaged, that it contains something other than data, or that an option breaks a rule.
    """
    return _load(file, getattr(file, "name", "checkpoint"))


def _load(file: Any, name: Any, **options: Any) -> Dict[str, Any]:
    try:
        with torch.serialization.safe_globals(CLASSES):
            state: Dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True, **options)
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
    """Read a checkpoint as it is in the file, options in plain dicts and Namespaces. Errors as in `read_checkpoint`.

    Its tensors are read from the file only when they are used.
    """
    if zipfile.is_zipfile(path):
        return _load(str(path), path, mmap=True)
    with open(path, "rb") as file:
        return load(file)


def read_belonging(path: Union[str, Path]) -> Belonging:
    """Read the words and the direction of a checkpoint. Errors as in `read_checkpoint`."""
    return belonging_of(path, read_options(path))


def belonging_of(path: Union[str, Path], state: Mapping[str, Any]) -> Belonging:
    """Return the words and the direction of the checkpoint `path`, whose content is `state`. Errors as above."""
    try:
        return of_checkpoint(str(path), state)
    except (LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: it is not a checkpoint of fairseq ({type(error).__name__}: {error})") from error


def override_options(state: Dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Replace options of a checkpoint that `read_checkpoint` returned, as fairseq's `--model-overrides` does."""
    if state.get("args") is not None:
        vars(state["args"]).update(overrides)
    if state.get("cfg") is not None:
        overwrite_args_by_name(state["cfg"], overrides)


def model_options(state: Mapping[str, Any]) -> Any:
    """Return the options of the model of a checkpoint: a config, a mapping or a Namespace; {} if there are none."""
    config = state.get("cfg")
    return (config.get("model") if isinstance(config, Mapping) else None) or state.get("args") or {}


def positions(state: Mapping[str, Any]) -> Tuple[int, int]:
    """Return the most tokens of a source and of a target that the model of a checkpoint reads, `</s>` included."""
    options = model_options(state)
    option = options.get if isinstance(options, Mapping) else lambda name: getattr(options, name, None)
    return option("max_source_positions") or 1024, option("max_target_positions") or 1024  # fairseq's defaults


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
    if not hasattr(tarfile, "data_filter"):  # Debian 12 has Python 3.11.2
        raise UserError(f"{name}: not unpacked: safe unpacking needs Python 3.11.4; unpack it, and name the folder")
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


def _load_models(
    filenames: Sequence[str],
    arg_overrides: Optional[Dict[str, Any]] = None,
    task: Any = None,
    strict: bool = True,
    suffix: str = "",
    num_shards: int = 1,
    state: Any = None,
) -> Any:
    """Load models as fairseq does. Foreign words, or another direction than that of the task, raise a UserError.

    Without a task, each model gets that of its options, with the data in `arg_overrides`.
    """
    if state is not None or suffix or num_shards > 1:  # compared by the caller; shards have a model of no translation
        return FAIRSEQ_LOAD_MODELS(filenames, arg_overrides, task, strict, suffix, num_shards, state)
    models = []
    for filename in filenames:
        state = read_checkpoint(filename)
        checkpoint = belonging_of(filename, state)
        override_options(state, arg_overrides or {})
        if isinstance(task, TranslationTask):
            refuse_other(checkpoint, of_task(task))
        elif task is None:
            config = convert_namespace_to_omegaconf(state["args"]) if state.get("args") else state["cfg"]
            kind = tasks.TASK_REGISTRY.get(config.task._name)
            if isinstance(kind, type) and issubclass(kind, TranslationTask):
                refuse_other(checkpoint, of_data(Path(str(config.task.data).split(os.pathsep)[0]), checkpoint))
        (model,), cfg, task = FAIRSEQ_LOAD_MODELS([filename], None, task, strict, state=state)
        models.append(model)
    return models, cfg, task
