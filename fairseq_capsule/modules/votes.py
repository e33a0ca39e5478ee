"""What modules with votes share: one matrix for each output capsule."""

import math
from typing import Sequence

import torch
from torch import Tensor, nn


def cast_votes(inputs: Tensor, weight: Tensor) -> Tensor:
    """The vote of each of `inputs` `[..., L, C]` for each output of `weight` `[..., N, C, D]`: `[..., L, N, D]`."""
    outputs, _, size = weight.shape[-3:]
    return (inputs @ weight.transpose(-3, -2).flatten(-2)).unflatten(-1, (outputs, size))


def by_output(votes: Tensor) -> Tensor:
    """The same votes `[..., L, N, D]`, an output's together in memory: sums over inputs read them as they are."""
    return votes.transpose(-3, -2).contiguous().transpose(-3, -2)


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """`torch.stack`, without a copy where there is one tensor."""
    return torch.stack(tuple(tensors)) if len(tensors) > 1 else tensors[0].unsqueeze(0)


def xavier(*shape: int) -> nn.Parameter:
    """A parameter, Xavier-uniform in its last two dimensions."""
    bound = math.sqrt(6 / (shape[-2] + shape[-1]))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def check_positive(**numbers: int) -> None:
    """Raise a ValueError that names the first number below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
