"""What modules with votes share: one matrix for each output capsule."""

import math

import torch
from torch import Tensor, nn


def cast_votes(inputs: Tensor, weight: Tensor) -> Tensor:
    """The vote of each of `inputs` `[B, L, C]` for each output of `weight` `[N, C, D]`: `[B, L, N, D]`."""
    outputs, _, size = weight.shape
    return (inputs @ weight.transpose(0, 1).flatten(1)).unflatten(-1, (outputs, size))


def by_output(votes: Tensor) -> Tensor:
    """The same votes `[B, L, N, D]`, those for an output together in memory: sums over inputs read them as they are."""
    return votes.transpose(1, 2).contiguous().transpose(1, 2)


def xavier(*shape: int) -> nn.Parameter:
    """A parameter, Xavier-uniform in its last two dimensions."""
    bound = math.sqrt(6 / (shape[-2] + shape[-1]))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def check_positive(**numbers: int) -> None:
    """Raise a ValueError that names the first number below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
