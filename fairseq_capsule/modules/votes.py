"""Votes: products of the inputs with one matrix for each output capsule."""

from torch import Tensor


def cast_votes(inputs: Tensor, weight: Tensor) -> Tensor:
    """Compute the votes `[..., L, N, D]` of `inputs` `[..., L, C]` with `weight` `[..., N, C, D]`."""
    outputs, _, size = weight.shape[-3:]
    return (inputs @ weight.transpose(-3, -2).flatten(-2)).unflatten(-1, (outputs, size))


def by_output(votes: Tensor) -> Tensor:
    """Return the same votes `[..., L, N, D]`, contiguous for each output, as sums over inputs read them."""
    return votes.transpose(-3, -2).contiguous().transpose(-3, -2)
