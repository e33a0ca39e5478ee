"""Arrays of numbers in checkpoints: `--eval-bleu` adds them to the metrics that fairseq saves.

numpy's own classes trust the state that a pickle gives them, and share their memory with torch's tensors. torch's
restricted unpickler calls the classes of this module in their place. They accept numbers only, and `with_arrays`
replaces them when the whole checkpoint has been checked.
"""

from typing import Any, List, Tuple

import numpy as np

from fairseq_capsule.errors import UserError

CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


class NumberType:
    """The type of an array's numbers, as a pickle describes it: `dtype("i8", False, True)` and a state."""

    def __init__(self, code: str, *options: Any):
        if type(code) is not str or code not in CODES:
            raise UserError(f"it contains an array whose type is {str(code)[:20]!r}, not that of numbers")
        self.code = code

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        if type(state) is not tuple or len(state) < 2 or state[1] not in ("<", "|", "="):
            raise UserError("it contains an array in another byte order; save it again on this kind of machine")


class Numbers:
    """The description of an array in a pickle. It is no array, so nothing that the pickle calls can use it as one."""

    array = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        try:
            _, shape, kind, fortran, content = state
            if type(kind) is not NumberType or type(content) is not bytes:
                raise TypeError("no numbers")
            order: Any = "F" if fortran is True else "C"
            self.array = np.frombuffer(content, kind.code).reshape(shape, order=order).copy()
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"it contains a damaged array ({str(error)[:80]})") from error


def _describe(*_: Any) -> Numbers:
    return Numbers()


# What torch's unpickler calls for the names in a pickle. The first is that of numpy 1.
ARRAYS: List[Any] = [
    (_describe, "numpy.core.multiarray._reconstruct"),
    (_describe, "numpy._core.multiarray._reconstruct"),
    (Numbers, "numpy.ndarray"),
    (NumberType, "numpy.dtype"),
]


def with_arrays(state: Any) -> Any:
    """Return a loaded checkpoint, with numpy's arrays in its metrics instead of their descriptions."""
    extra_state = state.get("extra_state") if isinstance(state, dict) else None
    if isinstance(extra_state, dict) and "metrics" in extra_state:
        extra_state["metrics"] = _replaced(extra_state["metrics"])
    return state


def _replaced(value: Any) -> Any:
    if type(value) is Numbers:
        return value.array
    if type(value) in (list, tuple):
        return type(value)(map(_replaced, value))
    if isinstance(value, dict):
        for key in value:
            value[key] = _replaced(value[key])
    return value
