"""Guided dynamic routing (Zheng et al. 2019, §3.1, Alg. 1): a decoder's state has a say in every agreement."""

from typing import Optional

from torch import Tensor

from fairseq_capsule.routing.additive import additive_scores
from fairseq_capsule.routing.dynamic import RoutingResult, dynamic_routing
from fairseq_capsule.routing.precision import in_float32


@in_float32
def guided_routing(
    votes: Tensor,
    keys: Optional[Tensor],
    first_part: Tensor,
    state_part: Tensor,
    capsule_weight: Tensor,
    vector: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    exponentials: Optional[Tensor] = None,
) -> RoutingResult:
    """Route source words to capsules, once for every target step.

    Agreements are those of Eq. 7, `b_tij += wᵀ tanh(W_b [z_t; v_ij; Ω_tj])`, with `W_b` in its three blocks: what the
    states and the votes give is computed once, by the caller, what the capsules give in every iteration. The first
    iteration's capsules are the same at every step: what they give is computed once, too.

    Args:
        votes: `v` `[B, I, J, D]`, 0 for words that take no part.
        keys: `[B, I, J, D]`, `W_b`'s second block times the votes.
        first_part: `[B, J, D]`, `W_b`'s third block times the first iteration's capsules.
        state_part: `[B, T, D]`, `W_b`'s first block times the states.
        capsule_weight: `[D, D]`, its third block itself.
        vector: `w` `[D]`.
        iterations: how often coupling and capsules are computed, at least 2.
        padding_mask: `[B, I]`, True marks the words that take no part.
        exponentials: `squared_exponential(keys)` where it is at hand; the keys themselves may then be None, where no
            gradient is wanted.

    Returns:
        `RoutingResult(capsules [B, T, J, D], coupling [B, T, I, J])`.

    Raises:
        ValueError: fewer than 2 iterations; with one there is nothing to guide.
    """
    if iterations < 2:
        raise ValueError(f"iterations must be at least 2, not {iterations}")
    states, vectors = state_part.unsqueeze(2), vector.unsqueeze(0)

    def scores(capsule_part: Tensor) -> Tensor:
        return additive_scores(states + capsule_part, keys, vectors, exponentials).squeeze(-1)

    # A word's coupling depends on no other word: one without votes may be let run along and be marked at the end.
    capsules, coupling = dynamic_routing(
        votes.unsqueeze(1),
        iterations - 1,
        agreement=lambda _, capsules: scores(capsules @ capsule_weight.t()),
        initial_logits=scores(first_part.unsqueeze(1)),
    )
    if padding_mask is not None:
        coupling = coupling.masked_fill(padding_mask[:, None, :, None], 0)
    return RoutingResult(capsules, coupling)
