"""The content of a checkpoint, built again from what torch read.

torch's restricted unpickler lets a file give attributes to the objects that it makes, also such as replace their
methods. Therefore nothing that it made is used: everything is read by its exact type, with the methods of that type,
into new objects of a few types, which have only their content.
"""

import io
from argparse import Namespace
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.records import FIRST, check_records

DEEPEST, LONGEST_NAME = 60, 200
MOST_VIEWS = 4  # how often the bytes of a storage may be in tensors that are not the whole storage

# fairseq uses these counters, also in the names of the files that it saves.
COUNTS = ("num_updates", "epoch", "iterations_in_epoch")

PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.Size, torch.dtype, torch.device)
LISTS = (list, tuple, set)
MAPPINGS = (dict, OrderedDict, Counter)

PARAMETERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# The last names of buffers of counts, in fairseq's and torch's modules, and their types.
COUNTED = ("num_batches_tracked", "version", "initted", "assignments", "counts")
NUMBERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

# Arrays of numbers: `--eval-bleu` adds them to the metrics that fairseq saves. numpy's own classes trust the state that
# a pickle gives them, and share their memory with torch's tensors. torch calls the two classes below in their place.
CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


class NumberType:
    """A call of `numpy.dtype` in a pickle: `("i8", False, True)` and a state with the byte order."""

    state: Any = None

    def __init__(self, *arguments: Any):
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Numbers(NumberType):
    """A call that makes an array in a pickle. It is no array, so nothing that the pickle calls can use it as one."""

    def array(self) -> np.ndarray[Any, Any]:
        try:
            _, shape, kind, fortran, content = self.state
            (code, *_), (_, order, *_) = kind.arguments, kind.state
            if type(kind) is not NumberType or type(content) is not bytes or type(code) is not str or code not in CODES:
                raise TypeError("no numbers")
            if order not in ("<", "|", "="):
                raise UserError("it contains an array in another byte order; save it again on this kind of machine")
            return np.frombuffer(content, code).reshape(shape, order="F" if fortran is True else "C").copy()
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise UserError(f"it contains a damaged array ({str(error)[:80]})") from error


# What torch's unpickler calls for the names in a pickle, in addition to its own. The second name is that of numpy 1.
CLASSES: List[Any] = [
    Namespace,
    (Numbers, "numpy._core.multiarray._reconstruct"),
    (Numbers, "numpy.core.multiarray._reconstruct"),
    (Numbers, "numpy.ndarray"),
    (NumberType, "numpy.dtype"),
]


def rebuild(content: bytes) -> Dict[str, Any]:
    """Return what the content of a checkpoint's file stands for, in new objects.

    They are plain data, `argparse.Namespace`s, arrays of numbers in the metrics, and dense tensors. Tensors that are
    one in the file share a storage, which has no other bytes. Anything else raises a UserError, or the error with which
    torch refuses it.
    """
    archive = content.startswith(FIRST)
    if archive:
        check_records(content)
    storages: List[Any] = []  # torch.UntypedStorage, of which mypy knows little
    free = len(content)

    def keep(storage: Any, _: str) -> Any:
        nonlocal free
        storages.append(storage)
        free -= storage.nbytes()
        if free < 0:
            raise UserError("its tensors are larger than the file")
        # In the older format, torch fills only those storages that the file lists later.
        return storage if archive else storage.fill_(0)

    stream = io.BytesIO(content)
    with torch.serialization.safe_globals(CLASSES):
        # weights_only is torch's default, but TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD turns the default off.
        state = torch.load(stream, map_location=keep, weights_only=True)
    if not archive and stream.read(1):
        raise UserError("the file is damaged, or torch did not write it (bytes after its end); copy it again")
    if type(state) is not dict:
        raise UserError(f"it is not a fairseq checkpoint: it contains a {type(state).__name__}")
    if sum(storage.nbytes() for storage in storages) > len(content):  # the older format can resize them
        raise UserError("its tensors are larger than the file")
    rebuilt: Dict[str, Any] = _Rebuilding(storages, len(content)).value(None, state, 0)
    _check(rebuilt)
    return rebuilt


Place = Optional[Tuple[Any, Any]]  # the place of a container, and the key of an entry in it; None for the checkpoint


class _Rebuilding:
    """Builds values again. What is one object in the file, is one object again."""

    def __init__(self, storages: List[Any], longest: int):
        self.longest = longest  # the size of the file: a tensor without values could have any dimension
        self.storages = {storage.data_ptr(): storage for storage in storages}
        self.copied = dict.fromkeys(self.storages, 0)
        self.tensors: Dict[Any, Tensor] = {}  # by storage and geometry
        self.values: Dict[int, Any] = {}  # by the identity of what torch made

    def value(self, place: Place, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        if id(value) in self.values:
            return self.values[id(value)]
        if depth > DEEPEST:
            raise UserError(f"its {_name(place)} has more than {DEEPEST} levels of nesting")
        if kind in (Tensor, nn.Parameter):
            new = self.tensor(place, torch.Tensor.detach(value))
        elif kind is Numbers and _name(place).split(".")[:2] == ["extra_state", "metrics"]:
            new = value.array()
        elif kind in LISTS:
            new = kind([self.value((place, index), item, depth + 1) for index, item in enumerate(value)])
        elif kind in MAPPINGS or kind is Namespace:
            new = kind()
            entries = vars(new) if kind is Namespace else new
            for key, item in dict.items(vars(value) if kind is Namespace else value):
                if type(key) is not int and not (type(key) is str and len(key) <= LONGEST_NAME):
                    raise UserError(f"its {_name(place)} has an entry whose name is not a number or a short text")
                entries[key] = self.value((place, key), item, depth + 1)
        else:
            full = f"{kind.__module__}.{kind.__qualname__}"
            raise UserError(f"its {_name(place)} is of type {full}, which is not plain data")
        self.values[id(value)] = new
        return new

    def tensor(self, place: Place, tensor: Tensor) -> Tensor:
        """Return a dense tensor with the values of another one, which must have no attributes of its own.

        A storage that is exactly the tensor is taken over without a copy: torch made it for this file, and nobody else
        uses the file's tensors.
        """
        if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
            kind = f"{tensor.device.type}, {'nested' if tensor.is_nested else tensor.layout}, {tensor.dtype}"
            raise UserError(f"its {_name(place)} is not a dense CPU tensor ({kind})")
        if max(tensor.shape, default=0) > self.longest:
            raise UserError(f"its {_name(place)} of shape {list(tensor.shape)} is larger than the file")
        size = tensor.numel() * tensor.element_size()
        if not size:
            return torch.empty(tensor.shape, dtype=tensor.dtype)
        # A tensor with strides of 0 repeats its bytes, so a file of a kilobyte could fill the memory. A tensor that the
        # pickle allocates has the bytes of whatever was in the memory before.
        storage = self.storages.get(tensor.untyped_storage().data_ptr())
        if storage is None or size > storage.nbytes():
            raise UserError(f"its {_name(place)} of shape {list(tensor.shape)} is larger than its stored bytes")
        start = storage.data_ptr()
        flags = tensor.is_neg(), tensor.is_conj()
        key = start, tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride(), flags
        if key not in self.tensors:
            if tensor.is_contiguous() and size == storage.nbytes() and not any(flags):
                self.tensors[key] = torch.empty(0, dtype=tensor.dtype).set_(storage).view(tensor.shape)
            else:
                self.copied[start] += size
                if self.copied[start] > MOST_VIEWS * storage.nbytes():
                    raise UserError(f"its {_name(place)} repeats bytes of other tensors")
                self.tensors[key] = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
        return self.tensors[key].detach()


def _name(place: Place) -> str:
    """Return the dotted name of a place. Only messages need it: building it for each entry takes long."""
    keys = []
    while place:
        place, key = place
        keys.append(str(key))
    return ".".join(reversed(keys))[:LONGEST_NAME] or "content"


def _check(state: Dict[str, Any]) -> None:
    """Check the parts that fairseq uses without a look at their types."""
    for part in ("extra_state", "task_state"):  # fairseq merges these into its own dicts
        if not isinstance(state.get(part, {}), dict):
            raise UserError(f"its {part} is of type {type(state[part]).__name__}, not dict")
    extra_state = state.get("extra_state", {})
    for parameters in (state.get("model"), extra_state.get("ema")):
        for name, parameter in parameters.items() if isinstance(parameters, dict) else ():
            if type(name) is not str:
                raise UserError(f"its parameter {name} has a name of type {type(name).__name__}, not a text")
            if not isinstance(parameter, Tensor):
                raise UserError(f"its parameter {name} is of type {type(parameter).__name__}, not a tensor")
            counts = name.rpartition(".")[2] in COUNTED and parameter.dtype in NUMBERS
            if parameter.dtype not in PARAMETERS and not counts:
                known = ", ".join(str(kind).removeprefix("torch.") for kind in PARAMETERS)
                problem = f"its parameter {name} is of type {parameter.dtype}"
                raise UserError(f"{problem}; the types of parameters are {known}")
    for owner in (extra_state.get("train_iterator") or {}, *(state.get("optimizer_history") or ())):
        for count in COUNTS:
            if count in owner and not (type(owner[count]) is int and owner[count] >= 0):
                raise UserError(f"its {count} is not a whole number from 0 on: {str(owner[count])[:80]!r}")


def require_finite(path: Union[str, Path], parameters: Mapping[str, Tensor]) -> None:
    """Raise a UserError if parameters of a model or a criterion in a checkpoint are NaN or infinite."""
    for name, parameter in parameters.items():
        if not parameter.flatten().isfinite().all():  # of more than 64 dimensions, torch cannot
            raise UserError(f"{path}: parameter {name} is not finite (NaN or infinite); leave this checkpoint out")
