"""Guided dynamic routing (Zheng et al. 2019, §3.1, Alg. 1): a decoder's state has a say in every agreement."""

from typing import Optional

from torch import Tensor

from fairseq_capsule.routing.additive import additive_scores
from fairseq_capsule.routing.dynamic import RoutingResult, dynamic_routing
from fairseq_capsule.routing.precision import in_float32


@in_float32
def guided_routing(
    votes: Tensor,
    iterations: int,
    *,
    vote_part: Optional[Tensor] = None,
    state_part: Optional[Tensor] = None,
    capsule_weight: Optional[Tensor] = None,
    vector: Optional[Tensor] = None,
    padding_mask: Optional[Tensor] = None,
) -> RoutingResult:
    """Route source words to capsules, once for every target step.

    Agreements are those of Eq. 7, `b_tij += wᵀ tanh(W_b [z_t; v_ij; Ω_tj])`, with `W_b` in its three blocks: what the
    states and the votes give is computed once, by the caller, what the capsules give in every iteration.

    Args:
        votes: `v` `[B, I, J, D]`, the same at every step.
        iterations: how often coupling and capsules are computed, at least 1; with 1 nothing else is read.
        vote_part: `[B, I, J, D]`, `W_b`'s second block times the votes.
        state_part: `[B, T, D]`, its first block times the states.
        capsule_weight: `[D, D]`, its third block.
        vector: `w` `[D]`.
        padding_mask: `[B, I]`, True marks source words that take no part.

    Returns:
        `RoutingResult(capsules [B, T, J, D], coupling [B, T, I, J], None)`; `T` is 1 with one iteration, whose capsules
        are the same at every step.

    Raises:
        ValueError: fewer than 1 iteration.
    """

    def agreement(_, capsules: Tensor) -> Tensor:
        left = state_part.unsqueeze(2) + capsules @ capsule_weight.t()
        return additive_scores(left, vote_part, vector.unsqueeze(0)).squeeze(-1)

    return dynamic_routing(
        votes.unsqueeze(1),
        iterations,
        padding_mask=None if padding_mask is None else padding_mask.unsqueeze(1),
        agreement=agreement,
        final_logits=False,
    )
