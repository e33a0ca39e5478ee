"""Votes: products of the inputs with one matrix for each output capsule."""

import math
from typing import Sequence

import torch
from torch import Tensor, nn


def cast_votes(inputs: Tensor, weight: Tensor) -> Tensor:
    """Compute the votes `[..., L, N, D]` of `inputs` `[..., L, C]` with `weight` `[..., N, C, D]`."""
    outputs, _, size = weight.shape[-3:]
    return (inputs @ weight.transpose(-3, -2).flatten(-2)).unflatten(-1, (outputs, size))


def by_output(votes: Tensor) -> Tensor:
    """Return the same votes `[..., L, N, D]`, contiguous for each output, as sums over inputs read them."""
    return votes.transpose(-3, -2).contiguous().transpose(-3, -2)


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """`torch.stack`, without a copy if there is only one tensor."""
    return torch.stack(tuple(tensors)) if len(tensors) > 1 else tensors[0].unsqueeze(0)


def xavier(*shape: int) -> nn.Parameter:
    """Create a parameter, Xavier-uniform in its last two dimensions."""
    bound = math.sqrt(6 / (shape[-2] + shape[-1]))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def check_positive(**numbers: int) -> None:
    """Raise a ValueError that names the first number below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
