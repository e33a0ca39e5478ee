"""Routing in float32 or higher for any precision of the model. Routing sums exponentials of sums of squares."""

import functools
from typing import Any, Iterable, Iterator

import torch
from torch import Tensor

from fairseq_capsule.routing.autocast import without_autocast


def _raised(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_raised(item) for item in value)
    if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    return value


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, tuple):
        items = [_cast(item, dtype) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def in_float32(function):
    """Decorate a function so that it runs in float32 or higher, with autocast off.

    float16 and bfloat16 arguments are converted to float32. Results are cast back to the dtype of the first tensor.
    float32 and float64 arguments are not changed.
    """

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        sample = next(_tensors((*args, *kwargs.values())), None)
        if sample is None:  # the function reports the error
            return function(*args, **kwargs)
        with without_autocast(sample.device.type):
            result = function(*map(_raised, args), **{name: _raised(value) for name, value in kwargs.items()})
        return _cast(result, sample.dtype)

    return wrapper
