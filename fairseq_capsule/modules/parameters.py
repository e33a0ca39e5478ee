"""Parameters of modules: their creation, their sizes, and several of one shape as one tensor."""

import math
from typing import Sequence

import torch
from torch import Tensor, nn


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
