"""Dynamic routing by agreement: the loop that routes the words of a sentence to capsules, and its two sums over votes.

Each sum is the gradient of the other. The gradient of either with respect to the votes is an outer product for each
output. If there are few components, one pass with broadcasting takes half the time of the matrix products that autograd
would use. The routings of attention logits have other forms of this loop, in `vertical.py` and `horizontal`.
"""

from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from capsule_routing.functions.precision import in_float32
from capsule_routing.functions.squash import leaky_softmax, masked_softmax, squash


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
    def forward(ctx: Any, coupling: Tensor, votes: Tensor) -> Tensor:
        ctx.save_for_backward(coupling, votes)
        return torch.einsum("...mn,...mnd->...nd", coupling, votes)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        coupling, votes = ctx.saved_tensors
        by_coupling, by_votes = ctx.needs_input_grad  # the first coupling is a constant
        of_coupling = dot_product_agreement(votes, gradient) if by_coupling else None
        return of_coupling, _outer(coupling, gradient) if by_votes else None


class _DotProductAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, votes: Tensor, capsules: Tensor) -> Tensor:
        ctx.save_for_backward(votes, capsules)
        return torch.einsum("...mnd,...nd->...mn", votes, capsules)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        votes, capsules = ctx.saved_tensors
        by_votes, by_capsules = ctx.needs_input_grad
        of_votes = _outer(gradient, capsules) if by_votes else None
        return of_votes, weighted_sum(gradient, votes) if by_capsules else None


def _outer(weights: Tensor, capsules: Tensor) -> Tensor:
    """`[..., M, N]` and `[..., N, D]` give `[..., M, N, D]`."""
    return weights.unsqueeze(-1) * capsules.unsqueeze(-3)


COMPETITIONS = ("output", "leaky", "input")


class RoutingResult(NamedTuple):
    """Output capsules `[..., N, D]`, and the coupling of each input with each output that gave them, `[..., M, N]`."""

    capsules: Tensor
    coupling: Tensor


@in_float32
def dynamic_routing(
    votes: Union[Tensor, Sequence[Tensor]],
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    competition: str = "output",
    agreement: Optional[Callable[[Tensor, Tensor], Tensor]] = None,
    initial_logits: Optional[Tensor] = None,
) -> RoutingResult:
    """Route input capsules to output capsules by agreement (Sabour et al. 2017, Procedure 1; Duan et al. 2020, Alg. 1).

    Args:
        votes: `[..., M, N, D]`, the vote of each of `M` inputs for each of `N` outputs; or one such tensor for each
            iteration (otherwise a ValueError is raised). Leading dimensions may broadcast against those of the
            agreement's logits and are never expanded.
        iterations: how often coupling and capsules are computed, at least 1, otherwise a ValueError is raised.
        padding_mask: `[..., M]`, True marks excluded inputs.
        competition: the capsules that compete. "output": the outputs compete for an input (softmax over `N`). "leaky":
            the same, but a share may go to no output. "input": the inputs compete for an output (softmax over `M`).
            Another text raises a ValueError.
        agreement: a function of votes `[..., M, N, D]` and capsules `[..., N, D]`. Its result `[..., M, N]` is added to
            the logits. By default it is the dot product.
        initial_logits: `[..., M, N]`, the logits of the first coupling (Sabour et al.'s log priors); 0 by default.

    Returns:
        `RoutingResult(capsules, coupling)`. The coupling of a padded input and its gradient are exactly 0. An output
        without valid inputs is 0.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
    if competition not in COMPETITIONS:
        raise ValueError(f"competition must be one of {', '.join(COMPETITIONS)}, not {competition!r}")
    votes = [votes] * iterations if isinstance(votes, Tensor) else votes
    if len(votes) != iterations:
        raise ValueError(f"{iterations} iterations need as many votes, not {len(votes)}")

    agreement = agreement or dot_product_agreement
    mask = None if padding_mask is None else padding_mask.unsqueeze(-1)
    logits = votes[0].new_zeros(votes[0].shape[:-1]) if initial_logits is None else initial_logits
    softmax = leaky_softmax if competition == "leaky" else torch.softmax
    for iteration, vote in enumerate(votes, start=1):
        coupling = masked_softmax(logits, -2 if competition == "input" else -1, mask, softmax)
        capsules = squash(weighted_sum(coupling, vote))
        if iteration < iterations:
            logits = logits + agreement(vote, capsules)
    return RoutingResult(capsules, coupling)
