"""Causal positional routing of only the last position, for incremental decoding (see routing/causal.py)."""

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairseq_capsule.routing.causal import BLOCK, CausalVotes
from fairseq_capsule.routing.precision import in_float32

# A prefix of up to this number of positions is a single block. It needs no padding, and an iteration is two products.
# CPU time on one core, 5 hypotheses, 8 heads of 64, for the routing and the cache of a step, at 72 / 96 / 127 / 160 /
# 192 words: as one block 0.6 / 0.8 / 1.4 / 3.0 / 4.0 ms, as blocks of 64 1.9 / 1.9 / 2.0 / 3.3 / 3.8 ms.
WHOLE = 160
# The width of such a block is a multiple of this, so that the cache is widened at few steps.
WIDTH = 32


@in_float32
def route_last_token(
    row: Tensor, queries: Tensor, keys: Tensor, logits: Tensor, iterations: int, *, scale: float = 1.0
) -> Tensor:
    """Compute the last row of `E + Ω`, where `Ω` is `horizontal_routing(E, iterations, causal=True)`.

    Time and memory grow linearly with the length.

    Args:
        row: the last row of the logits `E`, `[B, H, 1, L]`.
        queries: `[B, H, L, d]` of the whole prefix; rows of 0 are excluded. Positions of 0 may follow the last one.
        keys: `[B, H, L, d]`, likewise.
        logits: `[B, H, L, b]`, the result of `append_block_logits`; positions of 0 may follow.
        iterations: routing iterations, at least 1.
        scale: the logits are `scale` times the products of queries and keys.

    Returns:
        The row `[B, H, 1, L]`.

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
    queries, keys, logits = (rows.unflatten(2, (-1, block)) for rows in (queries, keys, logits))
    votes = CausalVotes(queries, keys, logits, scale=scale)
    one = row.new_ones(())
    sums = votes.totals()
    divisor = _divisor(sums, one, queries.size(1))
    weights = None
    for _ in range(iterations - 1):
        # The agreement is divided instead of the sum, so that division and addition are one kernel.
        agreements = votes.agreements(sums, votes.before(sums))
        weights = agreements / divisor if weights is None else torch.addcdiv(weights, agreements, divisor)
        couplings = weights.softmax(dim=1)
        sums = votes.sums(couplings, votes.after(couplings))
        divisor = _divisor(sums, one)
    capsules = sums.transpose(2, 3).flatten(3)[..., : row.size(3)]
    return torch.addcdiv(row, capsules, divisor.squeeze(2))


def block_size(length: int) -> int:
    """Return the number of positions in a block for a prefix length."""
    return BLOCK if length > WHOLE else length + -length % WIDTH


def missing_positions(length: int, block: int) -> int:
    """Return how many positions of 0 complete the last block. A single block may be shorter and needs none.

    `route_last_token` accepts any length. It copies its inputs unless these positions are already there.
    """
    return -length % block if length > block else 0


def append_block_logits(kept: Optional[Tensor], row: Tensor, block: int, missing: int = 0) -> Tensor:
    """Append the last position's logits within its own block to the cache.

    Args:
        kept: `[B, H, L-1, b']`, the result for the previous position without its positions of 0, or None at the first
            position. Its blocks may be smaller, or larger if it has only one.
        row: the last position's logits, `[B, H, 1, L]`.
        block: `b`.
        missing: the number of positions of 0 to add at the end.

    Returns:
        `[B, H, L + missing, b]`; a row is 0 after its own position.
    """
    inside = (row.size(3) - 1) % block + 1
    row = row[:, :, 0, -inside:]
    if kept is None:
        return pad(row, (0, (missing + 1) * block - inside)).unflatten(2, (-1, block))
    if kept.size(3) != block:
        kept = _in_blocks(kept, block)
    # The first row has enough zeros for any position.
    parts = [kept.flatten(2), row, kept[:, :, 0, inside:]]
    if missing:
        parts.append(row.new_zeros(*row.shape[:2], missing * block))
    return torch.cat(parts, dim=2).unflatten(2, (-1, block))


def _in_blocks(logits: Tensor, block: int) -> Tensor:
    """Convert logits within one block, `[B, H, L, b']`, to logits within blocks of another size, `[B, H, L, b]`."""
    logits = pad(logits, (0, -logits.size(3) % block))
    rows = logits.split(block, dim=2)
    return torch.cat([part[..., i * block : (i + 1) * block] for i, part in enumerate(rows)], dim=2)


def _divisor(sums: Tensor, one: Tensor, number: int = 1) -> Tensor:
    """Compute `x` in `squash(sums / number) = sums / x`: `n + number²/n` for the norm `n` of `sums`, infinite at 0."""
    norm = torch.linalg.vector_norm(sums, dim=(2, 4), keepdim=True)
    return torch.addcdiv(norm, one, norm, value=number * number)
