"""Loading fairseq's checkpoints under torch >= 2.6, with `weights_only` staying on.

A checkpoint is data. torch's restricted unpickler refuses any class that it was not told of; fairseq's checkpoints
hold a few harmless ones, named here. Anything else, a malicious pickle included, is refused before it runs. So is an
option that calls something: fairseq evaluates several options of a model as Python when it builds it.

These are the only two places where fairseq itself is patched:

- `checkpoint_utils.load_checkpoint_to_cpu` raises torch's errors again with the file's name and the reason, and looks
  through the options;
- `distributed.utils._broadcast_object_slow` reads what rank 0 broadcasts when several processes resume: a config, whose
  classes are allowed for that call alone, since no checkpoint needs them.
"""

import ast
import functools
import pickle
import re
import typing
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Dict, Iterable, Iterator, Tuple

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

from fairseq_capsule.errors import UserError

# Options that name files, which fairseq never evaluates: `corpus (1)/bin` is a path, though it reads like a call.
PATHS = re.compile(r"(.*_)?(data|dir|file|path|codes|model|vocab|merges|baseline)")

# The parts of a checkpoint's config that are used when its model is built; the others are a new command's own.
EVALUATED = ("model", "task", "criterion", "tokenizer", "bpe")

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
            state = load(path, *args, **kwargs)
        except OSError as error:
            if error.filename:  # it is missing, a folder, or not to be read: said already
                raise
            raise UserError(f"{path}: not loaded: {_reason(error)}") from error
        except (
            pickle.UnpicklingError,
            EOFError,
            RuntimeError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            raise UserError(f"{path}: not loaded: {_reason(error)}") from error
        for name, expression in _calls_in_options(state):
            raise UserError(
                f"{path}: not loaded: its option {name} calls something when it is evaluated: {expression!r}; "
                "nothing in it was run. No option of a model needs that"
            )
        return state

    return load_checkpoint_to_cpu


def _calls_in_options(state: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    """Options of a checkpoint whose text is a Python expression that calls something."""
    config = state.get("cfg") or {}
    parts = [(part, config.get(part)) for part in EVALUATED]
    arguments = state.get("args")
    for name, value in _texts([*parts, ("args", vars(arguments) if isinstance(arguments, Namespace) else arguments)]):
        if PATHS.fullmatch(name.rpartition(".")[2]):
            continue
        try:
            nodes = list(ast.walk(ast.parse(value.strip(), mode="eval")))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # no expression, so nothing that could be evaluated
        if any(isinstance(node, ast.Call) for node in nodes):
            yield name, value


def _texts(items: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[str, str]]:
    """All texts of nested options, with their dotted names."""
    for name, value in items:
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, Namespace):
            yield from _texts((f"{name}.{key}", item) for key, item in vars(value).items())
        elif OmegaConf.is_dict(value):  # where an option may have no value yet: "???"
            there = (key for key in value if not OmegaConf.is_missing(value, key))
            yield from _texts((f"{name}.{key}", value[key]) for key in there)
        elif isinstance(value, Mapping):
            yield from _texts((f"{name}.{key}", item) for key, item in value.items())
        elif isinstance(value, (list, tuple)) or OmegaConf.is_list(value):
            yield from _texts((f"{name}.{index}", item) for index, item in enumerate(value))


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
    if isinstance(error, (LookupError, TypeError, AttributeError)):
        return f"it is no checkpoint of fairseq's, or --model-overrides do not fit it ({first_line})"
    return f"the file is damaged or no checkpoint ({first_line}); copy or train it again"


def _allowing_configs(broadcast):
    def _broadcast_object_slow(*args, **kwargs):
        with torch.serialization.safe_globals(BROADCAST_CLASSES):
            return broadcast(*args, **kwargs)

    return _broadcast_object_slow
