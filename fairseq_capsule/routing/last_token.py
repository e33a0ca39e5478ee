"""Causal positional routing of the newest position alone, for decoding step by step (routing/causal.py)."""

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairseq_capsule.routing.causal import BLOCK, CausalVotes
from fairseq_capsule.routing.precision import in_float32


@in_float32
def route_last_token(
    row: Tensor, queries: Tensor, keys: Tensor, logits: Tensor, iterations: int, *, scale: float = 1.0
) -> Tensor:
    """The last row of `E + Ω`, where `Ω` is `horizontal_routing(E, iterations, causal=True)`.

    Time and memory grow linearly with the length.

    Args:
        row: the last row of the logits `E`, `[B, H, 1, L]`.
        queries: `[B, H, L, d]` of the whole prefix; rows of 0 take no part. Positions of 0 may follow the last.
        keys: likewise.
        logits: `[B, H, L, b]`, likewise; in row `t` what `append_block_logits` adds for position `t`.
        iterations: routing iterations, at least 1.
        scale: the logits are `scale` times the products of queries and keys.

    Returns:
        `[B, H, 1, L]`.

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
    votes = CausalVotes(*(rows.unflatten(2, (-1, block)) for rows in (queries, keys, logits)), scale=scale)
    one = row.new_ones(())
    sums = votes.totals()
    divisor = _divisor(sums, one, queries.size(1))
    weights = None
    for _ in range(iterations - 1):
        # An agreement with the sum is divided instead of the sum itself: so it is added in the same kernel.
        agreements = votes.agreements(sums, votes.before(sums))
        weights = agreements / divisor if weights is None else torch.addcdiv(weights, agreements, divisor)
        couplings = weights.softmax(dim=1)
        sums = votes.sums(couplings, votes.after(couplings))
        divisor = _divisor(sums, one)
    capsules = sums.transpose(2, 3).flatten(3)[..., : row.size(3)]
    return torch.addcdiv(row, capsules, divisor.squeeze(2))


def missing_positions(length: int, block: int = BLOCK) -> int:
    """How many positions of 0 complete the last block; 0 if there is but one, which may be shorter.

    `route_last_token` takes any length. It is spared a copy of what it is given if these positions are there already.
    """
    return -length % block if length > block else 0


def append_block_logits(kept: Optional[Tensor], row: Tensor, missing: int = 0, block: int = BLOCK) -> Tensor:
    """Add those of the last position's logits that are within its own block.

    Args:
        kept: `[B, H, L-1, b]`, what this function returned for the position before; None at the first one.
        row: the last position's logits, `[B, H, 1, L]`.
        missing: positions of 0 that follow.
        block: `b`.

    Returns:
        `[B, H, L + missing, b]`; a row is 0 after its own position.
    """
    inside = (row.size(3) - 1) % block + 1
    row = row[:, :, 0, -inside:]
    if kept is None:
        return pad(row, (0, (missing + 1) * block - inside)).unflatten(2, (-1, block))
    # The zeros after the first position are as many as any position requires.
    parts = [kept.flatten(2), row, kept[:, :, 0, inside:]]
    if missing:
        parts.append(row.new_zeros(*row.shape[:2], missing * block))
    return torch.cat(parts, dim=2).unflatten(2, (-1, block))


def _divisor(sums: Tensor, one: Tensor, number: int = 1) -> Tensor:
    """`x` in `squash(sums / number) = sums / x`: with their norm `n`, `n + number²/n`. Infinite where all is 0."""
    norm = torch.linalg.vector_norm(sums, dim=(2, 4), keepdim=True)
    return torch.addcdiv(norm, one, norm, value=number * number)
