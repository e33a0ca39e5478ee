"""What a checkpoint's file holds beside the config: a whole archive, tensors that their bytes cover, and plain data."""

import zipfile
from argparse import Namespace
from collections import Counter, OrderedDict
from typing import Any, Dict, Set

import torch
from torch import Tensor, nn

from fairseq_capsule.errors import UserError

DEEPEST = 60

# fairseq counts with these, and names the files that it saves by them.
COUNTS = ("num_updates", "epoch", "iterations_in_epoch")

PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.Size, torch.dtype, torch.device)
LISTS = (list, tuple, set)
MAPPINGS = (dict, OrderedDict, Counter)


def check_archive(path: str) -> bool:
    """Whether a checkpoint is an archive, as torch >= 1.6 writes it; older ones have no checksums.

    Raises:
        UserError: a record of it is damaged by its checksum, which torch does not look at, or is compressed.
    """
    with open(path, "rb") as stream:
        if stream.read(4) != b"PK\x03\x04":
            return False
    with zipfile.ZipFile(path) as archive:
        packed = [record.filename for record in archive.infolist() if record.compress_type != zipfile.ZIP_STORED]
        if packed:  # a megabyte of them can stand for a terabyte
            raise UserError(f"its record {packed[0]} is compressed, which torch never does")
        damaged = archive.testzip()
    if damaged:
        raise UserError(f"its record {damaged} is damaged (its checksum differs); copy or train it again")
    return True


def check_contents(state: Dict[str, Any]) -> None:
    """Raise UserError, which names the place, unless all but the config is tensors and plain data."""
    seen: Set[int] = set()
    for part, value in state.items():
        if part not in ("cfg", "args"):
            _check(str(part), value, 0, seen)
    for part in ("extra_state", "task_state"):  # fairseq merges them into its own
        if not isinstance(state.get(part, {}), dict):
            raise UserError(f"its {part} is of type {type(state[part]).__name__}, not dict")
    extra_state = state.get("extra_state") or {}
    history = state.get("optimizer_history") or []
    for owner in (extra_state.get("train_iterator") or {}, *history):
        for count in COUNTS:
            if count in owner and not (type(owner[count]) is int and owner[count] >= 0):
                raise UserError(f"its {count} is no number: {str(owner[count])[:80]!r}")


def _check(name: str, value: Any, depth: int, seen: Set[int]) -> None:
    kind = type(value)
    if kind in PLAIN or id(value) in seen:
        return
    seen.add(id(value))
    if depth > DEEPEST:
        raise UserError(f"its {name[:200]} is nested more than {DEEPEST} deep")
    if kind in (Tensor, nn.Parameter):
        _check_tensor(name, value)
    elif kind in LISTS:
        for index, item in enumerate(value):
            _check(f"{name}.{index}", item, depth + 1, seen)
    elif kind in MAPPINGS or kind is Namespace:
        for key, item in (vars(value) if kind is Namespace else value).items():
            _check(f"{name}.{key}", item, depth + 1, seen)
    else:
        raise UserError(f"its {name} is of type {kind.__module__}.{kind.__qualname__}, which is no data")


def _check_tensor(name: str, tensor: Tensor) -> None:
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise UserError(f"its {name} is no plain tensor ({tensor.device.type}, {tensor.layout})")
    # A tensor may repeat its bytes by strides of 0: a file of a kilobyte would fill the memory.
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise UserError(f"its {name} of shape {list(tensor.shape)} is larger than what is stored of it")
