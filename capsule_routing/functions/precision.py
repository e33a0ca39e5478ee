"""Routing in float32 or higher for any precision of the model. Routing sums exponentials of sums of squares.

Autocast is switched off for it."""

import functools
from contextlib import nullcontext
from typing import Any, Callable, ContextManager, Iterable, Iterator, Optional, TypeVar, cast

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])


def autocast_dtype(device: str) -> Optional[torch.dtype]:
    """Return the dtype that autocast casts to on a type of device, or None if it is off."""
    # torch raises on its meta device, and its compiler cannot trace `torch.amp.is_autocast_available`.
    if device == "meta" or not torch.is_autocast_enabled(device):
        return None
    return torch.get_autocast_dtype(device)


def without_autocast(device: str) -> ContextManager[Any]:
    """Return a context in which autocast is off. If it is already off, the context does nothing, which is faster."""
    return nullcontext() if autocast_dtype(device) is None else torch.autocast(device, enabled=False)


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


def _floating(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor) and value.is_floating_point():
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _floating(value)


def in_float32(function: Function) -> Function:
    """Decorate a function so that it runs in float32 or higher, with autocast off.

    float16 and bfloat16 arguments are converted to float32; float32 and float64 arguments are not changed. Floating
    results are cast to the dtype of the first floating argument.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        sample = next(_floating((*args, *kwargs.values())), None)
        if sample is None:  # nothing to convert
            return function(*args, **kwargs)
        with without_autocast(sample.device.type):
            named = {name: _mapped(value, _raised) for name, value in kwargs.items()}
            result = function(*_mapped(args, _raised), **named)
        return _mapped(result, lambda tensor: tensor.to(sample.dtype) if tensor.is_floating_point() else tensor)

    return cast(Function, wrapper)
