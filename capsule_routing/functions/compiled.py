"""Functions under `torch.compile`: the same results from fewer and larger kernels, for training on a GPU."""

import functools
from typing import Any, Callable

import torch

BACKEND = "inductor"


def is_traced() -> bool:
    """Return whether torch traces the call: `torch.compile`, `torch.export`. Then nothing may depend on values."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def is_exported() -> bool:
    """Return whether the call is traced for all sizes, by `torch.export`. Then nothing may depend on sizes either."""
    is_exporting = getattr(torch.compiler, "is_exporting", None)  # torch 2.6 has it not
    return torch.jit.is_tracing() or (is_exporting is not None and is_exporting())


@functools.cache
def compiled_form(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that torch compiles at its first call, once for tensors of all sizes. This takes a minute."""
    return torch.compile(function, dynamic=True, backend=BACKEND)
