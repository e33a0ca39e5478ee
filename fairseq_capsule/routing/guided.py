"""Guided dynamic routing (Zheng et al. 2019, §3.1, Alg. 1): a decoder's state has a say in every agreement."""

from typing import Optional

from torch import Tensor

from fairseq_capsule.routing.additive import additive_scores, squared_exponential
from fairseq_capsule.routing.dynamic import RoutingResult, dynamic_routing
from fairseq_capsule.routing.precision import in_float32


@in_float32
def guided_routing(
    votes: Tensor,
    vote_part: Tensor,
    state_part: Tensor,
    capsule_weight: Tensor,
    vector: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    vote_exponential: Optional[Tensor] = None,
) -> RoutingResult:
    """Route source words to capsules, once for every target step.

    Agreements are those of Eq. 7, `b_tij += wᵀ tanh(W_b [z_t; v_ij; Ω_tj])`, with `W_b` in its three blocks: what the
    states and the votes give is computed once, by the caller, what the capsules give in every iteration.

    Args:
        votes: `v` `[B, I, J, D]`, the same at every step, 0 for words that take no part.
        vote_part: `[B, I, J, D]`, `W_b`'s second block times the votes.
        state_part: `[B, T, D]`, its first block times the states.
        capsule_weight: `[D, D]`, its third block.
        vector: `w` `[D]`.
        iterations: how often coupling and capsules are computed, at least 1.
        padding_mask: `[B, I]`, True marks the words that take no part.
        vote_exponential: `squared_exponential(vote_part)` where it is at hand.

    Returns:
        `RoutingResult(capsules [B, T, J, D], coupling [B, T, I, J], None)`. With one iteration `T` is 1: the capsules
        are the same at every step.

    Raises:
        ValueError: fewer than 1 iteration.
    """
    exponential = squared_exponential(vote_part) if vote_exponential is None else vote_exponential

    def agreement(_, capsules: Tensor) -> Tensor:
        left = state_part.unsqueeze(2) + capsules @ capsule_weight.t()
        return additive_scores(left, vote_part, vector.unsqueeze(0), exponential).squeeze(-1)

    # A word's coupling depends on no other word: one without votes may be let run along and be marked at the end.
    capsules, coupling, _ = dynamic_routing(votes.unsqueeze(1), iterations, agreement=agreement, final_logits=False)
    if padding_mask is not None:
        coupling = coupling.masked_fill(padding_mask[:, None, :, None], 0)
    return RoutingResult(capsules, coupling, None)
