"""Loading of fairseq's checkpoints. All commands, of fairseq and of this package, read them through `load`.

It reads a file once, builds its content again (`contents`), and checks its options before fairseq sees them
(`config`), because fairseq evaluates several options as Python. Only this module patches fairseq:

- In `checkpoint_utils` the name `torch` becomes a stand-in whose `load` is ours. torch itself stays as it is.
- In `distributed.utils` too: there, `load` reads the checkpoint that rank 0 has built and broadcasts when several
  processes resume. fairseq has made a config of its options, whose classes are allowed only for this call.
- `file_utils.load_archive_file` unpacks tar archives for the hub with `archives`; fairseq would write anywhere.
- `models.build_model` refuses an unknown architecture: the message of fairseq ends in an error of its own, a KeyError.
- `eval` in fairseq's modules parses only literals, in case a string arrives by another way. Each module gets its own
  `eval`, which hides Python's, when it is there or when a checkpoint is read.
- `Trainer.load_checkpoint` refuses to continue a checkpoint with another reading of a paper. Only there a training
  knows both the file to restore and the options of its model before the parameters are loaded.
"""

import contextlib
import os
import pickle
import re
import sys
import types
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Union

import numpy as np
import torch
from fairseq import checkpoint_utils, file_utils, models
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.trainer import Trainer
from omegaconf import DictConfig, ListConfig
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.archives import unpack
from fairseq_capsule.checkpoints.config import check_config, literal
from fairseq_capsule.checkpoints.contents import CODES, rebuild
from fairseq_capsule.data.files import regular_file
from fairseq_capsule.options import READINGS, in_words, readings

# Everything in a checkpoint that rank 0 has loaded: a config, arrays as numpy pickles them, and what holds the rest.
BROADCAST_CLASSES: List[Any] = [
    *(AnyNode, ContainerMetadata, DictConfig, ListConfig, Metadata, defaultdict, dict, int, list, Any, Namespace),
    *(np.dtype, np.ndarray, np.empty(0).__reduce__()[0], *{type(np.dtype(code)) for code in CODES}),
    distributed_utils._TensorPlaceholder,
]
FAIRSEQ_LOAD_ARCHIVE, FAIRSEQ_LOAD_INTO_TRAINER = file_utils.load_archive_file, Trainer.load_checkpoint
FAIRSEQ_BUILD_MODEL = models.build_model


def install() -> None:
    """Patch fairseq. A second call changes nothing."""
    for module, function in ((checkpoint_utils, load), (distributed_utils, _load_broadcast)):
        if not isinstance(module.torch, _StandIn):
            module.torch = _StandIn(module.torch, function)
    file_utils.load_archive_file = _load_archive
    Trainer.load_checkpoint = _load_into_trainer
    models.build_model = _build_model
    _replace_eval()


def read_checkpoint(path: Union[str, Path]) -> Dict[str, Any]:
    """Read a checkpoint to the CPU, as fairseq does.

    A UserError says if it is damaged, or contains something other than a checkpoint's data. A missing file raises an
    OSError.
    """
    install()
    with _naming_the_file(regular_file(path)):
        state: Dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(path))
        return state


def read_options(path: Union[str, Path]) -> Dict[str, Any]:
    """Read a checkpoint as it is in the file, options in plain dicts and Namespaces. Errors as in `read_checkpoint`."""
    with open(regular_file(path), "rb") as file:
        return load(file)


def load(file: Any, *_: Any, **__: Any) -> Dict[str, Any]:
    """Read a checkpoint from an open file, in place of `torch.load`. Options that it lacks are those it had.

    A UserError as in `read_checkpoint` says what is wrong.
    """
    _replace_eval()
    if isinstance(getattr(file, "name", None), str):
        regular_file(file.name)  # opened by fairseq
    with _naming_the_file(getattr(file, "name", "checkpoint")):
        state = rebuild(file.read())
        check_config(state)
        return with_readings(state)


def with_readings(state: Dict[str, Any]) -> Dict[str, Any]:
    """Add the readings that an older checkpoint lacks to it, with the values that it was trained with.

    `state` is changed in place and returned. fairseq fills in its own defaults later, and ignores `--model-overrides`
    of options that are missing.
    """
    for options in _all_options(state):
        values = vars(options) if isinstance(options, Namespace) else options
        for name, (marker, before) in READINGS.items():
            if isinstance(values, dict) and marker in values:
                values.setdefault(name, before)
    return state


def model_options(state: Mapping[str, Any]) -> Any:
    """Return the options of the model of a checkpoint: a config, a mapping or a Namespace; {} if there are none."""
    return next(filter(None, _all_options(state)), {})


def _all_options(state: Mapping[str, Any]) -> List[Any]:
    config = state.get("cfg")
    return [config.get("model") if isinstance(config, Mapping) else None, state.get("args")]


def refuse_other_readings(path: str, state: Mapping[str, Any], options: Any) -> None:
    """Raise a UserError if the model's `options` have another reading than a checkpoint, the result of `with_readings`.

    The parameters may have the same names and shapes.
    """
    old, own = readings(model_options(state)), readings(options)
    for name, value in old.items():
        if own.get(name, value) != value:
            trained = in_words({name: value})
            present = in_words({name: own[name]})
            remedy = f"continue with {value}, or train anew in another --save-dir"
            raise UserError(f"{path}: it was trained with {trained}, but the model has {present}; {remedy}")


def _load_broadcast(file: Any, *_: Any, **__: Any) -> Any:
    with torch.serialization.safe_globals(BROADCAST_CLASSES):
        return torch.load(file, map_location="cpu", weights_only=True)


class _StandIn(types.ModuleType):
    """A module with another `load`."""

    def __init__(self, module: types.ModuleType, load: Callable[..., Any]):
        super().__init__(module.__name__)
        self._module, self.load = module, load

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _load_archive(archive_file: str) -> Any:
    try:
        path = file_utils.cached_path(archive_file, cache_dir=None)  # downloads a URL
    except OSError:
        raise UserError(f"{archive_file}: no such file or folder, and no URL that can be fetched") from None
    if not os.path.isdir(path):
        unpack(archive_file, regular_file(path))
    return FAIRSEQ_LOAD_ARCHIVE(archive_file)


def _load_into_trainer(trainer: Trainer, filename: str, *args: Any, **kwargs: Any) -> Any:
    if PathManager.isfile(filename):
        refuse_other_readings(filename, read_options(filename), trainer.cfg.model)
    return FAIRSEQ_LOAD_INTO_TRAINER(trainer, filename, *args, **kwargs)


def refuse_unknown_architecture(name: Any) -> None:
    """Raise a UserError if no architecture of this name is registered."""
    if name and name not in ARCH_MODEL_REGISTRY and name not in MODEL_DATACLASS_REGISTRY:
        remedy = "give the --user-dir of the plugin that defines it (in a configuration common.user_dir)"
        raise UserError(f"the architecture {name!r} is unknown; name one of fairseq or of this package, or {remedy}")


def _build_model(cfg: Any, *args: Any, **kwargs: Any) -> Any:
    refuse_unknown_architecture(getattr(cfg, "_name", None) or getattr(cfg, "arch", None))
    return FAIRSEQ_BUILD_MODEL(cfg, *args, **kwargs)


def _replace_eval() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq.") or name == "fairseq":
            vars(module)["eval"] = literal


@contextlib.contextmanager
def _naming_the_file(path: Union[str, Path]) -> Iterator[None]:
    """Raise errors of a checkpoint again, with the name of the file and the reason."""
    try:
        yield
    except Exception as error:
        # It names the file already, or says that the file is missing, a folder, or unreadable.
        if ": not loaded: " in str(error) or (isinstance(error, OSError) and error.filename):
            raise
        raise UserError(f"{path}: not loaded: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Summarise an error in one line."""
    text = str(error)
    if isinstance(error, UserError):
        return text
    refused = re.search(r"(?:Unsupported global: GLOBAL|Unsupported class|GLOBAL) (\S+)", text)
    if refused:
        return (
            f"it contains {refused[1].rstrip('.,')}, which is not allowed in a fairseq checkpoint; nothing in it was "
            "run. If you made it yourself, save it again without that object"
        )
    if isinstance(error, pickle.UnpicklingError):
        return "its pickle contains more than a checkpoint's data; nothing in it was run"
    if "weights_only" in text:  # torch's own message explains how to load it anyway
        return "its format can contain programs (TorchScript) or is older than torch 1.0; nothing in it was run"
    first_line = f"{type(error).__name__}: {text}".splitlines()[0][:200]
    if isinstance(error, (LookupError, TypeError, AttributeError)):
        return f"it is not a fairseq checkpoint ({first_line})"
    return f"the file is damaged or not a checkpoint ({first_line}); copy it again or train again"
