"""The two sums over votes that a routing consists of. Each one is the gradient of the other.

The gradient of either with respect to the votes is an outer product for each output. If there are few components, one
pass with broadcasting takes half the time of the matrix products that autograd would use.
"""

from typing import Optional, Tuple

import torch
from torch import Tensor


def weighted_sum(coupling: Tensor, votes: Tensor) -> Tensor:
    """`Σ_M coupling · votes`: coupling `[..., M, N]` and votes `[..., M, N, D]` give `[..., N, D]`.

    Votes with leading dimensions that broadcast are not expanded.
    """
    if coupling.shape != votes.shape[:-1]:
        return torch.einsum("...mn,...mnd->...nd", coupling, votes)
    return _WeightedSum.apply(coupling, votes)


def dot_product_agreement(votes: Tensor, capsules: Tensor) -> Tensor:
    """`Σ_D votes · capsules`: votes `[..., M, N, D]` and capsules `[..., N, D]` give `[..., M, N]`.

    Votes with leading dimensions that broadcast are not expanded.
    """
    if votes.shape[:-3] != capsules.shape[:-2]:
        return torch.einsum("...mnd,...nd->...mn", votes, capsules)
    return _DotProductAgreement.apply(votes, capsules)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, coupling: Tensor, votes: Tensor) -> Tensor:
        ctx.save_for_backward(coupling, votes)
        return torch.einsum("...mn,...mnd->...nd", coupling, votes)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        coupling, votes = ctx.saved_tensors
        by_coupling, by_votes = ctx.needs_input_grad  # the first coupling is a constant
        return (
            dot_product_agreement(votes, gradient) if by_coupling else None,
            _outer(coupling, gradient) if by_votes else None,
        )


class _DotProductAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx, votes: Tensor, capsules: Tensor) -> Tensor:
        ctx.save_for_backward(votes, capsules)
        return torch.einsum("...mnd,...nd->...mn", votes, capsules)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        votes, capsules = ctx.saved_tensors
        by_votes, by_capsules = ctx.needs_input_grad
        return (
            _outer(gradient, capsules) if by_votes else None,
            weighted_sum(gradient, votes) if by_capsules else None,
        )


def _outer(weights: Tensor, capsules: Tensor) -> Tensor:
    """`[..., M, N]` and `[..., N, D]` give `[..., M, N, D]`."""
    return weights.unsqueeze(-1) * capsules.unsqueeze(-3)
