"""Loading of fairseq's checkpoints under torch >= 2.6, with `weights_only` on.

torch's restricted unpickler refuses all classes that are not allowed explicitly. fairseq's checkpoints need a few
harmless ones, which this module allows. Arrays of numbers are read by `checkpoints/arrays.py`. Anything else, such as a
malicious pickle, is refused before it runs. Other modules of `fairseq_capsule.checkpoints` then check the content
before fairseq reads it, because fairseq evaluates several options as Python.

Only this module patches fairseq. It changes nine places:

- `checkpoint_utils.load_checkpoint_to_cpu` first checks the file. It raises torch's errors again with the name of the
  file and the reason. fairseq's commands, its hub, and this package's commands and scripts all load through it.
- `checkpoint_utils.load_ema_from_checkpoint` (`--ema-seed-model`) reads a file itself. It gets the same check.
- `checkpoint_utils.torch` is a stand-in with another `load`. It adds the options that older checkpoints lack
  (`checkpoints/readings.py`) to what torch loaded, before fairseq makes a config of it and applies
  `--model-overrides`. torch itself stays as it is.
- `Trainer.load_checkpoint` refuses to continue a checkpoint with another reading of a paper. It is the only place where
  a training knows both the file to restore and the options of its model: fairseq gives a task no checkpoint before the
  parameters are loaded, gives a model only its own options, and hides an error of `load_state_dict` behind another.
- `file_utils.load_archive_file` unpacks tar archives for the hub. `checkpoints/archives.py` does so instead, because
  fairseq's code writes wherever an archive says.
- `models.build_model` names an unknown architecture, and the option for the plugin that may define it.
- `TranslationTask.load_dictionary` reads the dictionaries of all translation tasks before the checkpoint is known. It
  states what is wrong with a broken dictionary.
- `eval` in fairseq's modules parses only literals (`checkpoints/literals.py`), in case a string arrives by another way.
  `utils.eval_str_list`, `eval_str_dict`, `eval_bool` and about twenty models, criterions and optimisers use it.
- `distributed.utils._broadcast_object_slow` reads the checkpoint that rank 0 broadcasts when several processes resume.
  fairseq has made a config of its options, whose classes are allowed only for this call.
"""

import contextlib
import functools
import os
import pickle
import re
import types
import typing
from argparse import Namespace
from collections import defaultdict

import torch
from fairseq import checkpoint_utils, file_utils, models
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer
from omegaconf import DictConfig, ListConfig
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

from fairseq_capsule.checkpoints import literals
from fairseq_capsule.checkpoints.archives import unpack
from fairseq_capsule.checkpoints.arrays import ARRAYS, with_arrays
from fairseq_capsule.checkpoints.config import check_config
from fairseq_capsule.checkpoints.contents import check_archive, check_contents
from fairseq_capsule.checkpoints.readings import refuse_other_readings, with_readings
from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule.errors import UserError

CHECKPOINT_CLASSES: typing.List[typing.Any] = [Namespace]
BROADCAST_CLASSES: typing.List[typing.Any] = [
    AnyNode,
    ContainerMetadata,
    DictConfig,
    ListConfig,
    Metadata,
    Namespace,
    defaultdict,
    dict,
    distributed_utils._TensorPlaceholder,
    int,
    list,
    typing.Any,
]


def install() -> None:
    """Allow the classes of fairseq's checkpoints and patch fairseq. A second call changes nothing."""
    torch.serialization.add_safe_globals(CHECKPOINT_CLASSES)
    for name in ("load_checkpoint_to_cpu", "load_ema_from_checkpoint"):
        setattr(checkpoint_utils, name, _once(getattr(checkpoint_utils, name), _checking))
    checkpoint_utils.torch = _TorchOfCheckpoints(torch.__name__)
    Trainer.load_checkpoint = _once(Trainer.load_checkpoint, _refusing_other_readings)
    file_utils.load_archive_file = _once(file_utils.load_archive_file, _unpacking)
    models.build_model = _once(models.build_model, _naming_the_architecture)
    TranslationTask.load_dictionary = staticmethod(_once(TranslationTask.load_dictionary, _naming_what_is_broken))
    distributed_utils._broadcast_object_slow = _once(distributed_utils._broadcast_object_slow, _allowing_configs)
    literals.install()


def read_lazily(path: str) -> typing.Dict[str, typing.Any]:
    """Read a checkpoint without its tensors in memory; they are read from the file when they are used.

    The options are those of the file, in plain dicts and Namespaces, with those that an older checkpoint lacks.

    Raises:
        UserError: the file is damaged, or contains something other than a checkpoint's data.
        OSError: the path does not exist or cannot be read.
    """
    with _naming_the_file(path), torch.serialization.safe_globals(ARRAYS):
        return with_readings(_check(PathManager.get_local_path(path)))


def _once(function, decorator):
    if getattr(function, "patched_by", None) == __name__:
        return function
    patched = functools.wraps(function)(decorator(function))
    patched.patched_by = __name__
    return patched


class _TorchOfCheckpoints(types.ModuleType):
    """torch with a `load` that adds the options which a checkpoint lacks."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def load(self, *args, **kwargs):
        return with_readings(torch.load(*args, **kwargs))


def _refusing_other_readings(load):
    def load_checkpoint(trainer, filename, *args, **kwargs):
        if PathManager.isfile(filename):
            refuse_other_readings(filename, read_lazily(filename), trainer.cfg.model)
        return load(trainer, filename, *args, **kwargs)

    return load_checkpoint


def _checking(load):
    def checked(path, *args, **kwargs):
        local_path = PathManager.get_local_path(path)  # a local copy of a remote file
        with _naming_the_file(path), torch.serialization.safe_globals(ARRAYS):
            _check(local_path)
            return with_arrays(load(local_path, *args, **kwargs))

    return checked


@contextlib.contextmanager
def _naming_the_file(path):
    """Raise errors of a checkpoint again, with the name of the file and the reason."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}: not loaded: {error}") from error
    except OSError as error:
        if error.filename:  # the error already says that it is missing, a folder, or unreadable
            raise
        raise UserError(f"{path}: not loaded: {_reason(error)}") from error
    except Exception as error:
        raise UserError(f"{path}: not loaded: {_reason(error)}") from error


def _unpacking(load):
    def load_archive_file(archive_file):
        try:
            path = file_utils.cached_path(archive_file, cache_dir=None)  # downloads a URL
        except OSError:
            raise UserError(f"{archive_file}: no such file or folder, and no URL that can be fetched") from None
        if not os.path.isdir(path):
            unpack(archive_file, path)
        return load(archive_file)

    return load_archive_file


def _naming_the_architecture(build):
    def build_model(cfg, *args, **kwargs):
        name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
        if name and name not in models.ARCH_MODEL_REGISTRY and name not in models.MODEL_DATACLASS_REGISTRY:
            raise UserError(
                f"the architecture {name!r} is unknown; name one of fairseq or of this package, or give the --user-dir "
                "of the plugin that defines it (in a configuration common.user_dir)"
            )
        return build(cfg, *args, **kwargs)

    return build_model


def _naming_what_is_broken(load):
    def load_dictionary(filename):
        try:
            return load(filename)
        except Exception:
            read_dictionary(filename)  # raises an error that names the line
            raise  # if the dictionary is valid

    return load_dictionary


def _check(path: str) -> typing.Dict[str, typing.Any]:
    """Check a checkpoint before fairseq reads it, without reading the bytes of its tensors, and return its content.

    Raises:
        UserError: it contains something other than data.
    """
    archive = check_archive(path)
    # weights_only is torch's default, but TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD turns the default off.
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=archive)
    if type(state) is not dict:
        raise UserError(f"it is not a fairseq checkpoint: it contains a {type(state).__name__}")
    check_config(state)
    check_contents(state)
    return state


def _reason(error: Exception) -> str:
    """Summarise an error of torch in one line."""
    text = str(error)
    refused = re.search(r"(?:Unsupported global: GLOBAL|Unsupported class|GLOBAL) (\S+)", text)
    if refused:
        name = refused.group(1).rstrip(".,")
        return (
            f"it contains {name}, which is not allowed in a fairseq checkpoint; nothing in it was run. "
            "If you made it yourself, save it again without that object"
        )
    if isinstance(error, pickle.UnpicklingError):
        return "its pickle contains more than a checkpoint's data; nothing in it was run"
    if "weights_only" in text:  # torch's own message explains how to load it anyway
        return "its format can contain programs (TorchScript) or is older than torch 1.0; nothing in it was run"
    first_line = f"{type(error).__name__}: {text}".splitlines()[0][:200]
    if isinstance(error, (LookupError, TypeError, AttributeError)):
        return f"it is not a fairseq checkpoint, or --model-overrides do not fit it ({first_line})"
    return f"the file is damaged or not a checkpoint ({first_line}); copy it again or train again"


def _allowing_configs(broadcast):
    def _broadcast_object_slow(*args, **kwargs):
        with torch.serialization.safe_globals([*BROADCAST_CLASSES, *ARRAYS]):
            return with_arrays(broadcast(*args, **kwargs))

    return _broadcast_object_slow
