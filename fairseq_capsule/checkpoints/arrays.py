"""Arrays of numbers in checkpoints, such as the statistics that `--eval-bleu` adds to the metrics that fairseq saves.

numpy's own classes trust the state that a pickle gives them. torch's restricted unpickler calls the classes of this
module in their place, which accept numbers only.
"""

from typing import Any, Tuple

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


class NumberArray(np.ndarray):
    """An array from a checkpoint. It is saved as a plain array of numpy."""

    def __new__(cls, *_):  # a pickle could call it with any size
        raise UserError("it contains an array without numbers")

    def __setstate__(self, state: Any) -> None:
        try:
            _, shape, kind, fortran, content = state
            if type(kind) is not NumberType or type(content) is not bytes:
                raise TypeError("no numbers")
            array = np.frombuffer(content, kind.code).reshape(shape, order="F" if fortran is True else "C")
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"it contains a damaged array ({str(error)[:80]})") from error
        checked: Any = (1, array.shape, array.dtype, fortran is True, content)
        super().__setstate__(checked)

    def __reduce_ex__(self, protocol):
        return np.asarray(self).__reduce_ex__(protocol)


def _empty(kind: Any, shape: Any, code: Any) -> NumberArray:
    """Make an array for `__setstate__`."""
    if kind is not NumberArray:
        raise UserError("it contains an array of an unknown class")
    return np.ndarray.__new__(NumberArray, (0,), "b")


# What torch's unpickler calls for the names in a pickle. The first is that of numpy 1.
ARRAYS = [
    (_empty, "numpy.core.multiarray._reconstruct"),
    (_empty, "numpy._core.multiarray._reconstruct"),
    (NumberArray, "numpy.ndarray"),
    (NumberType, "numpy.dtype"),
]
