"""Checks of a checkpoint's file and of its content other than the config."""

import zipfile
from argparse import Namespace
from collections import Counter, OrderedDict
from typing import Any, Dict, Optional, Set, Tuple

import torch
from torch import Tensor, nn

from fairseq_capsule.checkpoints.arrays import Numbers
from fairseq_capsule.errors import UserError

DEEPEST, LONGEST_NAME = 60, 200

# fairseq uses these counters, also in the names of the files that it saves.
COUNTS = ("num_updates", "epoch", "iterations_in_epoch")

PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.Size, torch.dtype, torch.device)
LISTS = (list, tuple, set)
MAPPINGS = (dict, OrderedDict, Counter)


def check_archive(path: str) -> bool:
    """Return whether a checkpoint is a zip archive, as torch >= 1.6 writes it. Older formats have no checksums.

    Raises:
        UserError: a record is compressed, or its checksum is wrong. torch does not verify checksums.
    """
    with open(path, "rb") as stream:
        if stream.read(4) != b"PK\x03\x04":
            return False
    with zipfile.ZipFile(path) as archive:
        packed = [record.filename for record in archive.infolist() if record.compress_type != zipfile.ZIP_STORED]
        if packed:  # a compressed megabyte can expand to a terabyte
            raise UserError(f"its record {packed[0]} is compressed; torch never writes such records")
        damaged = archive.testzip()
    if damaged:
        raise UserError(f"its record {damaged} is damaged (wrong checksum); copy the file again or train again")
    return True


def check_contents(state: Dict[str, Any]) -> None:
    """Check that everything except the config is tensors and plain data, and that each parameter is a tensor.

    The metrics may have arrays of numbers. The key of an entry is a number, or a text of at most `LONGEST_NAME`
    characters.

    Raises:
        UserError: something else is found. The message names the place.
    """
    seen: Set[int] = set()
    _check(None, {part: value for part, value in state.items() if part not in ("cfg", "args")}, 0, seen)
    model = state.get("model")
    for name, parameter in model.items() if isinstance(model, dict) else ():
        if not isinstance(parameter, Tensor):
            raise UserError(f"its parameter {str(name)[:200]} is of type {type(parameter).__name__}, not a tensor")
    for part in ("extra_state", "task_state"):  # fairseq merges these into its own dicts
        if not isinstance(state.get(part, {}), dict):
            raise UserError(f"its {part} is of type {type(state[part]).__name__}, not dict")
    extra_state = state.get("extra_state") or {}
    history = state.get("optimizer_history") or []
    for owner in (extra_state.get("train_iterator") or {}, *history):
        for count in COUNTS:
            if count in owner and not (type(owner[count]) is int and owner[count] >= 0):
                raise UserError(f"its {count} is not a whole number from 0 on: {str(owner[count])[:80]!r}")


Place = Optional[Tuple[Any, Any]]  # the place of a container, and the key of an entry in it; None for the checkpoint


def _check(place: Place, value: Any, depth: int, seen: Set[int]) -> None:
    kind = type(value)
    if kind in PLAIN or id(value) in seen:
        return
    seen.add(id(value))
    if depth > DEEPEST:
        raise UserError(f"its {_name(place)} has more than {DEEPEST} levels of nesting")
    if kind in (Tensor, nn.Parameter):
        _check_tensor(place, value)
    elif kind is Numbers and _name(place).split(".")[:2] == ["extra_state", "metrics"]:
        return
    elif kind in LISTS:
        for index, item in enumerate(value):
            _check((place, index), item, depth + 1, seen)
    elif kind in MAPPINGS or kind is Namespace:
        for key, item in (vars(value) if kind is Namespace else value).items():
            if type(key) is not int and not (type(key) is str and len(key) <= LONGEST_NAME):
                raise UserError(f"its {_name(place)} has an entry whose name is not a number or a short text")
            _check((place, key), item, depth + 1, seen)
    else:
        raise UserError(f"its {_name(place)} is of type {kind.__module__}.{kind.__qualname__}, which is not plain data")


def _name(place: Place) -> str:
    """Return the dotted name of a place. Only messages need it: building it for each entry takes long."""
    keys = []
    while place:
        place, key = place
        keys.append(str(key))
    return ".".join(reversed(keys))[:LONGEST_NAME] or "content"


def _check_tensor(place: Place, tensor: Tensor) -> None:
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise UserError(f"its {_name(place)} is not a dense CPU tensor ({tensor.device.type}, {tensor.layout})")
    # A tensor with strides of 0 repeats its bytes, so a file of a kilobyte could fill the memory.
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise UserError(f"its {_name(place)} of shape {list(tensor.shape)} is larger than its stored bytes")
