"""Routing in float32 or higher for any precision of the model. Routing sums exponentials of sums of squares."""

import functools
from typing import Any, Callable, Iterable, Iterator

import torch
from torch import Tensor

from fairseq_capsule.routing.autocast import without_autocast


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply `change` to all tensors of a value, also in lists and (named) tuples."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [_mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _raised(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


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
            named = {name: _mapped(value, _raised) for name, value in kwargs.items()}
            result = function(*_mapped(args, _raised), **named)
        return _mapped(result, lambda tensor: tensor.to(sample.dtype) if tensor.is_floating_point() else tensor)

    return wrapper
