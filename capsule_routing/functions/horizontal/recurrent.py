"""Causal positional routing of only the last position, for incremental decoding (see routing/horizontal/chunk.py)."""

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import pad

from capsule_routing.functions.horizontal.chunk import CausalVotes
from capsule_routing.functions.precision import in_float32

# A prefix of up to this number of positions is a single block. It needs no padding, and an iteration is two products.
# CPU time on one core, 5 hypotheses, 8 heads of 64, for the routing and the cache of a step, at 72 / 96 / 127 / 160 /
# 192 words: as one block 0.6 / 0.8 / 1.4 / 3.0 / 4.0 ms, as blocks of 64 1.9 / 1.9 / 2.0 / 3.3 / 3.8 ms.
LONGEST_BLOCK = 160
# The width of its logits is a multiple of this, so that they are widened at few steps. A larger width copies more.
# Generation of the tiny model relative to fairseq's: 0.92 and 0.94 with 8, 0.87 and 0.91 with 32.
WIDTH = 8


@in_float32
def route_last_token(
    row: Tensor, queries: Optional[Tensor], keys: Optional[Tensor], logits: Tensor, iterations: int, *, scale: float = 1
) -> Tensor:
    """Compute the last row of `E + Ω`, where `Ω` is `horizontal_routing(E, iterations, causal=True)`.

    Time and memory grow linearly with the length.

    Args:
        row: the last row of the logits `E`, `[B, H, 1, L]`.
        queries: `[B, H, L, d]` of the whole prefix; rows of 0 are excluded. Positions of 0 may follow the last one.
            None is allowed only for a single block; otherwise it raises a ValueError.
        keys: `[B, H, L, d]`, likewise.
        logits: the logits of each position within its own block, `[B, H, L, b]`, 0 after its own position. Positions of
            0 may follow.
        iterations: routing iterations; fewer than 1 raise a ValueError.
        scale: the logits are `scale` times the products of queries and keys.

    Returns:
        The row `[B, H, 1, L]`.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
    length = logits.size(2)
    block = min(logits.size(3), length)
    logits = logits[..., :block]
    missing = -length % block
    if length == block:
        queries = keys = logits  # not read: all votes are in the logits
    elif queries is None or keys is None:
        raise ValueError(f"a prefix of {length} positions in blocks of {block} needs its queries and keys")
    elif missing:
        queries, keys, logits = (pad(rows, (0, 0, 0, missing)) for rows in (queries, keys, logits))
    queries, keys, logits = (rows.unflatten(2, (-1, block)) for rows in (queries, keys, logits))
    votes = CausalVotes(queries, keys, logits, scale=scale)
    one = row.new_ones(())
    sums = votes.totals()
    divisor = _divisor(sums, one, row.size(1))
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


def append_to_block(kept: Optional[Tensor], row: Tensor) -> Tensor:
    """Append the last position's logits `[B, H, 1, L]` to those of a single block.

    `kept` is the result for the previous position, `[B, H, L-1, b']`, or None at the first position. The result is `[B,
    H, L, b]` with `b ≥ L`; a row is 0 after its own position.
    """
    length = row.size(3)
    width = length + -length % WIDTH
    if kept is None:
        return pad(row, (0, width - length))
    if kept.size(3) < width:
        kept = pad(kept, (0, width - kept.size(3)))
    # The first row is 0 after the first position, so it has the zeros that the new row ends with.
    return torch.cat([kept.flatten(2), row[:, :, 0], kept[:, :, 0, length:]], dim=2).unflatten(2, (length, -1))


def split_block(logits: Tensor, block: int) -> Tensor:
    """Convert the logits within a single block, `[B, H, L, ≥ L]`, to those within blocks of `block` positions."""
    logits = pad(logits, (0, -logits.size(3) % block))
    rows = logits.split(block, dim=2)
    return torch.cat([part[..., i * block : (i + 1) * block] for i, part in enumerate(rows)], dim=2)


def in_own_block(row: Tensor, block: int) -> Tensor:
    """Return the part of the last position's logits, `[B, H, 1, L]`, that lies within its own block."""
    return row[..., -((row.size(3) - 1) % block + 1) :]


def _divisor(sums: Tensor, one: Tensor, number: int = 1) -> Tensor:
    """Compute `x` in `squash(sums / number) = sums / x`: `n + number²/n` for the norm `n` of `sums`, infinite at 0."""
    norm = torch.linalg.vector_norm(sums, dim=(2, 4), keepdim=True)
    return torch.addcdiv(norm, one, norm, value=number * number)
