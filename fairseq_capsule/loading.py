"""Loading fairseq's checkpoints under torch >= 2.6, with `weights_only` staying on.

A checkpoint is data. torch's restricted unpickler refuses any class that it was not told of; fairseq's checkpoints
hold a few harmless ones, named here. Anything else, a malicious pickle included, is refused before it runs.

These are the only two places where fairseq itself is patched:

- `checkpoint_utils.load_checkpoint_to_cpu` raises torch's errors again with the file's name and the reason;
- `distributed.utils._broadcast_object_slow` reads what rank 0 broadcasts when several processes resume: a config, whose
  classes are allowed for that call alone, since no checkpoint needs them.
"""

import functools
import pickle
import re
import typing
from argparse import Namespace
from collections import defaultdict

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from omegaconf import DictConfig, ListConfig
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

from fairseq_capsule.errors import UserError

CHECKPOINT_CLASSES = [Namespace]
BROADCAST_CLASSES = [
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
    """Allow the classes of fairseq's checkpoints and patch its two readers; doing it twice changes nothing."""
    torch.serialization.add_safe_globals(CHECKPOINT_CLASSES)
    checkpoint_utils.load_checkpoint_to_cpu = _once(checkpoint_utils.load_checkpoint_to_cpu, _naming_the_file)
    distributed_utils._broadcast_object_slow = _once(distributed_utils._broadcast_object_slow, _allowing_configs)


def _once(function, decorator):
    if getattr(function, "patched_by", None) == __name__:
        return function
    patched = functools.wraps(function)(decorator(function))
    patched.patched_by = __name__
    return patched


def _naming_the_file(load):
    def load_checkpoint_to_cpu(path, *args, **kwargs):
        try:
            return load(path, *args, **kwargs)
        except FileNotFoundError:
            raise
        except Exception as error:  # whatever a damaged file makes torch or fairseq stumble over
            raise UserError(f"{path}: not loaded: {_reason(error)}") from error

    return load_checkpoint_to_cpu


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
    first_line = f"{type(error).__name__}: {text}".splitlines()[0]
    return f"the file is damaged or no checkpoint ({first_line}); copy or train it again"


def _allowing_configs(broadcast):
    def _broadcast_object_slow(*args, **kwargs):
        with torch.serialization.safe_globals(BROADCAST_CLASSES):
            return broadcast(*args, **kwargs)

    return _broadcast_object_slow
