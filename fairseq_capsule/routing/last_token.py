"""Causal positional routing of the newest position alone, for decoding step by step (routing/causal.py)."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairseq_capsule.routing.causal import BLOCK, CausalVotes
from fairseq_capsule.routing.precision import in_float32


@in_float32
def route_last_token(queries: Tensor, keys: Tensor, logits: Tensor, iterations: int) -> Tensor:
    """The last of the routings of `horizontal_routing(logits, iterations, causal=True)`, for decoding step by step.

    Time and memory grow linearly with the length.

    Args:
        queries: `[B, H, L, d]` of the whole prefix, scaled; rows of 0 take no part.
        keys: `[B, H, L, d]`; rows of 0 take no part.
        logits: `[B, H, L, b]`, in row `t` the `block_logits` of position `t`.
        iterations: routing iterations, at least 1.

    Returns:
        The last position's output capsules `[B, H, 1, L]`.

    Raises:
        ValueError: fewer than 1 iteration.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
    length = queries.size(2)
    block = min(logits.size(3), length)
    missing = missing_positions(length, block)
    if missing:
        queries, keys, logits = (pad(rows, (0, 0, 0, missing)) for rows in (queries, keys, logits))
    logits = logits[..., :block]
    votes = CausalVotes(*(rows.unflatten(2, (-1, block)) for rows in (queries, keys, logits)))
    sums, divisor = votes.totals(), queries.size(1)
    weights = None
    for _ in range(iterations - 1):
        capsules = _squashed(sums, divisor)
        agreements = votes.agreements(capsules, votes.before(capsules))
        weights = agreements if weights is None else weights + agreements
        couplings = weights.softmax(dim=1)
        sums, divisor = votes.sums(couplings, votes.after(couplings)), 1
    return _squashed(sums, divisor).transpose(2, 3).flatten(3)[..., :length]


def missing_positions(length: int, block: int = BLOCK) -> int:
    """How many positions of 0 complete the last block; 0 if there is but one, which may be shorter.

    `route_last_token` takes any length. It is spared a copy of what it is given if these positions are there already.
    """
    return -length % block if length > block else 0


def block_logits(logits: Tensor, block: int = BLOCK) -> Tensor:
    """Of the last position's logits `[B, H, 1, L]` those within its own block, `[B, H, 1, b]`, 0 after it."""
    inside = (logits.size(3) - 1) % block + 1
    return pad(logits[..., -inside:], (0, block - inside))


def _squashed(sums: Tensor, divisor: int) -> Tensor:
    """`squash(sums / divisor)`, in the fewest kernels. Where all is 0 the norm's reciprocal is infinite and gives 0."""
    norm = torch.linalg.vector_norm(sums, dim=(2, 4), keepdim=True)
    return sums / norm.add(norm.reciprocal(), alpha=divisor * divisor)
