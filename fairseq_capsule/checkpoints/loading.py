"""Loading fairseq's checkpoints under torch >= 2.6, with `weights_only` staying on.

A checkpoint is data. torch's restricted unpickler refuses any class that it was not told of; fairseq's checkpoints
hold a few harmless ones, named here. Anything else, a malicious pickle included, is refused before it runs. What the
unpickler lets through is checked by the rules of `fairseq_capsule.checkpoints` before fairseq sees it, because fairseq
evaluates several options as Python.

fairseq itself is patched here alone, in six places:

- `checkpoint_utils.load_checkpoint_to_cpu` checks the file first, and raises torch's errors again with the file's name
  and the reason. Every way in passes it: fairseq's commands, its hub, this package's commands and scripts;
- `checkpoint_utils.load_ema_from_checkpoint` (`--ema-seed-model`), which reads a file by itself, does the same;
- `file_utils.load_archive_file`, by which the hub unpacks a tar archive, refuses one that would write or move anything
  outside of its folder;
- `TranslationTask.load_dictionary`, by which every task of translation reads its dictionaries before a checkpoint is
  known, says what is wrong with a broken one;
- `eval` in fairseq's modules reads literals alone (`checkpoints/literals.py`), should a text come by another way: for
  `utils.eval_str_list`, `eval_str_dict`, `eval_bool` and some twenty models, criterions and optimisers;
- `distributed.utils._broadcast_object_slow` reads what rank 0 broadcasts when several processes resume: a config, whose
  classes are allowed for that call alone, since no checkpoint needs them.
"""

import functools
import lzma
import os
import pickle
import re
import tarfile
import typing
import zlib
from argparse import Namespace
from collections import defaultdict

import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig, ListConfig
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

from fairseq_capsule.checkpoints import literals
from fairseq_capsule.checkpoints.config import check_config
from fairseq_capsule.checkpoints.contents import check_archive, check_contents
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
    """Allow the classes of fairseq's checkpoints and patch fairseq; doing it twice changes nothing."""
    torch.serialization.add_safe_globals(CHECKPOINT_CLASSES)
    for name in ("load_checkpoint_to_cpu", "load_ema_from_checkpoint"):
        setattr(checkpoint_utils, name, _once(getattr(checkpoint_utils, name), _checking))
    file_utils.load_archive_file = _once(file_utils.load_archive_file, _unpacking_inside)
    TranslationTask.load_dictionary = staticmethod(_once(TranslationTask.load_dictionary, _naming_what_is_broken))
    distributed_utils._broadcast_object_slow = _once(distributed_utils._broadcast_object_slow, _allowing_configs)
    literals.install()


def _once(function, decorator):
    if getattr(function, "patched_by", None) == __name__:
        return function
    patched = functools.wraps(function)(decorator(function))
    patched.patched_by = __name__
    return patched


def _checking(load):
    def checked(path, *args, **kwargs):
        local_path = PathManager.get_local_path(path)  # of a file elsewhere a copy; it is what is loaded, too
        try:
            _check(local_path)
            return load(local_path, *args, **kwargs)
        except UserError as error:
            raise UserError(f"{path}: not loaded: {error}") from error
        except OSError as error:
            if error.filename:  # it is missing, a folder, or not to be read: said already
                raise
            raise UserError(f"{path}: not loaded: {_reason(error)}") from error
        except Exception as error:
            raise UserError(f"{path}: not loaded: {_reason(error)}") from error

    return checked


def _unpacking_inside(load):
    def load_archive_file(archive_file):
        try:
            path = file_utils.cached_path(archive_file, cache_dir=None)  # of an address what is fetched
        except OSError:
            raise UserError(f"{archive_file}: no such file or folder, and nothing to be fetched by this name") from None
        try:
            if not os.path.isdir(path):
                _check_members(archive_file, path)
            return load(archive_file)
        except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{archive_file}: neither a folder nor a tar archive ({error}); name a folder") from error

    return load_archive_file


def _check_members(name: str, path: str) -> None:
    """Files and folders with relative names alone: fairseq unpacks whatever is there, wherever it says."""
    with tarfile.open(path) as archive:
        for member in archive:
            inside = not member.name.startswith("/") and ".." not in member.name.split("/")
            if not (inside and (member.isfile() or member.isdir())):
                raise UserError(
                    f"{name}: not unpacked: {member.name[:80]!r} in it is no file or folder inside of the archive; "
                    "unpack it yourself and name the folder"
                )


def _naming_what_is_broken(load):
    def load_dictionary(filename):
        try:
            return load(filename)
        except Exception:
            read_dictionary(filename)  # which says where; what it takes, fairseq's error is about
            raise

    return load_dictionary


def _check(path: str) -> None:
    """Read a checkpoint without its tensors' bytes, and refuse what is no data, before fairseq reads it."""
    archive = check_archive(path)
    # weights_only is torch's default, which TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD turns off.
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=archive)
    if type(state) is not dict:
        raise UserError(f"it is no checkpoint of fairseq's: it holds a {type(state).__name__}")
    check_config(state)
    check_contents(state)


def _reason(error: Exception) -> str:
    """One line instead of torch's paragraphs."""
    text = str(error)
    refused = re.search(r"(?:Unsupported global: GLOBAL|Unsupported class|GLOBAL) (\S+)", text)
    if refused:
        name = refused.group(1).rstrip(".,")
        return (
            f"it asks for {name}, which is not among the data that a fairseq checkpoint holds; nothing in it was run. "
            "If you made it yourself, save it again without that object"
        )
    if isinstance(error, pickle.UnpicklingError):
        return "its pickle holds more than a checkpoint's data; nothing in it was run"
    if "weights_only" in text:  # torch says how to load it all the same
        return "it is in a format that holds programs (TorchScript) or of torch before 1.0; nothing in it was run"
    first_line = f"{type(error).__name__}: {text}".splitlines()[0][:200]
    if isinstance(error, (LookupError, TypeError, AttributeError)):
        return f"it is no checkpoint of fairseq's, or --model-overrides do not fit it ({first_line})"
    return f"the file is damaged or no checkpoint ({first_line}); copy or train it again"


def _allowing_configs(broadcast):
    def _broadcast_object_slow(*args, **kwargs):
        with torch.serialization.safe_globals(BROADCAST_CLASSES):
            return broadcast(*args, **kwargs)

    return _broadcast_object_slow
