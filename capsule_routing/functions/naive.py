"""Every routing in plain autograd, with the signatures of the fast ones: what they are tested against.

A routing is one loop, `_route`. The functions below say which inputs vote for which outputs. They keep every tensor of
the size of the votes.
"""

from typing import Callable, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from capsule_routing.functions.dynamic import RoutingResult
from capsule_routing.functions.squash import leaky_softmax, masked_softmax

Agreement = Callable[[Tensor, Tensor], Tensor]


def squash(s: Tensor, dim: int = -1) -> Tensor:
    """`‖s‖² / (1 + ‖s‖²) · s / ‖s‖`."""
    square = s.square().sum(dim, keepdim=True)
    norm = square.clamp(min=torch.finfo(s.dtype).tiny).sqrt()  # the square root has no gradient at 0
    return s * norm / (1 + square)


def _route(
    votes: Sequence[Tensor],
    logits: Tensor,
    mask: Optional[Tensor],
    competition: str = "output",
    agreement: Optional[Agreement] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Route votes `[..., M, N, D]`, one tensor for each iteration. Return capsules, coupling and the next logits.

    `mask` broadcasts against the logits `[..., M, N]`; True marks what is excluded.
    """
    softmax = leaky_softmax if competition == "leaky" else torch.softmax
    for vote in votes:
        coupling = masked_softmax(logits, -2 if competition == "input" else -1, mask, softmax)
        capsules = squash((coupling.unsqueeze(-1) * vote).sum(-3))
        logits = logits + (agreement(vote, capsules) if agreement else (vote * capsules.unsqueeze(-3)).sum(-1))
    return capsules, coupling, logits


def dynamic_routing(
    votes: Union[Tensor, Sequence[Tensor]],
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    competition: str = "output",
    agreement: Optional[Agreement] = None,
    initial_logits: Optional[Tensor] = None,
) -> RoutingResult:
    """Inputs vote for outputs; see `routing.dynamic_routing`."""
    votes = [votes] * iterations if isinstance(votes, Tensor) else votes
    logits = votes[0].new_zeros(votes[0].shape[:-1]) if initial_logits is None else initial_logits
    mask = None if padding_mask is None else padding_mask.unsqueeze(-1)
    return RoutingResult(*_route(votes, logits, mask, competition, agreement)[:2])


def vertical_routing(
    logits: Tensor, iterations: int, *, padding_mask: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor]:
    """Heads vote for query positions; see `routing.vertical_routing`."""
    mask = None if padding_mask is None else padding_mask.unsqueeze(1)
    capsules, _, weights = _route([logits] * iterations, logits.new_zeros(logits.shape[:3]), mask)
    return capsules, weights if mask is None else weights.masked_fill(mask, 0)


def horizontal_routing(
    logits: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    factors: Optional[Tuple[Tensor, Tensor]] = None,
) -> Tensor:
    """At each position, the tokens up to it vote for heads; see `routing.horizontal_routing`. `factors` is not read."""
    batch, _, length, _ = logits.shape
    votes = (logits.tril() if causal else logits).transpose(1, 2).unsqueeze(1)  # [B, 1, token, H, K]
    later = torch.ones(length, length, dtype=torch.bool, device=logits.device).triu(1)
    mask = later.expand(batch, -1, -1)  # [B, position, token]
    if padding_mask is not None:
        mask = mask | padding_mask.unsqueeze(1) | padding_mask.unsqueeze(2)
    return dynamic_routing(
        votes, iterations, padding_mask=mask, initial_logits=votes.new_zeros(batch, length, *votes.shape[2:4])
    ).capsules.transpose(1, 2)


def route_last_token(
    row: Tensor,
    queries: Optional[Tensor],
    keys: Optional[Tensor],
    logits: Tensor,
    iterations: int,
    *,
    scale: float = 1.0,
) -> Tensor:
    """Add the last row of the causal routing of all positions to `row`; see `routing.route_last_token`."""
    length = row.size(3)
    if queries is not None and keys is not None:
        logits = scale * queries @ keys.mT
    return row + horizontal_routing(logits[:, :, :length, :length], iterations, causal=True)[:, :, -1:]


def additive_scores(left: Tensor, right: Tensor, vectors: Tensor, right_exponential: Optional[Tensor] = None) -> Tensor:
    """`Σ_D vectors · tanh(left + right)`; see `routing.additive_scores`. `right_exponential` is not read."""
    return torch.tanh(left.unsqueeze(2) + right.unsqueeze(1)) @ vectors.t()


def guided_routing(
    votes: Tensor,
    keys: Tensor,
    first_part: Tensor,
    state_part: Tensor,
    capsule_weight: Tensor,
    vector: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    exponentials: Optional[Tensor] = None,
) -> RoutingResult:
    """Source words vote for capsules, at each target step; see `routing.guided_routing`. `exponentials` is not read."""

    def scores(capsule_part: Tensor) -> Tensor:
        return additive_scores(state_part.unsqueeze(2) + capsule_part, keys, vector.unsqueeze(0)).squeeze(-1)

    return dynamic_routing(
        votes.unsqueeze(1),
        iterations - 1,
        padding_mask=None if padding_mask is None else padding_mask.unsqueeze(1),
        agreement=lambda _, capsules: scores(capsules @ capsule_weight.t()),
        initial_logits=scores(first_part.unsqueeze(1)),
    )
