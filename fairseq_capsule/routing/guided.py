"""Guided dynamic routing (Zheng et al. 2019, §3.1, Alg. 1). The agreements also depend on the decoder's state."""

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
    """Route source words to capsules, separately for each target step.

    The agreement is Eq. 7, `b_tij += wᵀ tanh(W_b [z_t; v_ij; Ω_tj])`. `W_b` has three blocks, for the states, the votes
    and the capsules. The caller computes the products of the first two blocks once. The product with the capsules is
    computed in each iteration. The capsules of the first iteration are the same at all steps, so the caller also
    computes their product once.

    Args:
        votes: `v` `[B, I, J, D]`, 0 at padding.
        keys: `[B, I, J, D]`, the second block of `W_b` times the votes.
        first_part: `[B, J, D]`, the third block of `W_b` times the capsules of the first iteration.
        state_part: `[B, T, D]`, the first block of `W_b` times the states.
        capsule_weight: `[D, D]`, the third block of `W_b`.
        vector: `w` `[D]`.
        iterations: how often coupling and capsules are computed, at least 2.
        padding_mask: `[B, I]`, True marks padding.
        exponentials: `squared_exponential(keys)`, if it is already computed. `keys` may then be None if no gradient of
            them is needed.

    Returns:
        `RoutingResult(capsules [B, T, J, D], coupling [B, T, I, J])`.

    Raises:
        ValueError: fewer than 2 iterations. With one iteration there is no agreement.
    """
    if iterations < 2:
        raise ValueError(f"iterations must be at least 2, not {iterations}")
    states, vectors = state_part.unsqueeze(2), vector.unsqueeze(0)

    def scores(capsule_part: Tensor) -> Tensor:
        return additive_scores(states + capsule_part, keys, vectors, exponentials).squeeze(-1)

    # The coupling of a word does not depend on other words. So padding, which has votes of 0, is masked at the end.
    capsules, coupling = dynamic_routing(
        votes.unsqueeze(1),
        iterations - 1,
        agreement=lambda _, capsules: scores(capsules @ capsule_weight.t()),
        initial_logits=scores(first_part.unsqueeze(1)),
    )
    if padding_mask is not None:
        coupling = coupling.masked_fill(padding_mask[:, None, :, None], 0)
    return RoutingResult(capsules, coupling)
