"""Horizontal routing of attention logits (Duan et al. 2020, Alg. 3), without a loop over positions.

A row `e_{l,h}` of a head's logits `E_h` is a vote. A routing uses only sums and dot products of votes.
docs/capsule-transformer.md derives the products that replace the paper's loops. There are three forms: all positions at
once (`parallel`), causal in blocks of positions (`chunk`), and the last position alone (`recurrent`).
"""

from typing import Optional, Tuple

from torch import Tensor

from capsule_routing.functions.horizontal.chunk import causal_routing
from capsule_routing.functions.horizontal.parallel import positional_routing
from capsule_routing.functions.precision import in_float32

# With fewer keys than this times their rank, products of the logits themselves are cheaper than those of their factors.
FACTORS_PAY = 2
# From this length on causal routing in blocks is faster than products of the logits. A self-attention, forward and
# backward, in alternation on one core, 8 heads of 64, one sentence or four: at 192 / 224 / 256 / 320 words blocks take
# 1.18 / 1.11-1.16 / 0.98-1.01 / 0.82-0.84 times as long.
BLOCKS_PAY = 288


@in_float32
def horizontal_routing(
    logits: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    factors: Optional[Tuple[Tensor, Tensor]] = None,
) -> Tensor:
    """Horizontal routing: for each position, the tokens up to it are routed to heads (Duan et al. 2020, Alg. 3).

    Args:
        logits: `[B, H, L, K]`, the scaled products of queries and keys; 0 at padded keys.
        iterations: routing iterations; fewer than 1 raise a ValueError.
        padding_mask: `[B, L]`, True marks padded queries.
        causal: whether keys after a query are left out of its votes, as in a decoder (§3.4.3).
        factors: `(q [B, H, L, d], k [B, H, K, d])` with `logits = q kᵀ`; `k` must be 0 at padded keys. The rank `d` of
            the logits makes the cost quadratic in length instead of cubic; used where that is faster.

    Returns:
        The output capsules `Ω` `[B, H, L, K]`, 0 at padded queries.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
    pay = BLOCKS_PAY if causal else FACTORS_PAY * (0 if factors is None else factors[0].size(3))
    if factors is None or logits.size(3) < pay:
        votes = _zero(logits, padding_mask)
        capsules = positional_routing(votes.tril() if causal else votes, iterations)
    else:
        queries, keys = _zero(factors[0], padding_mask), factors[1]
        if causal:
            capsules = causal_routing(queries, keys, iterations)
        else:
            capsules = positional_routing(queries, iterations, keys)
    return _zero(capsules, padding_mask)


def _zero(rows: Tensor, padding_mask: Optional[Tensor]) -> Tensor:
    """Rows `[B, H, L, D]` with those that `padding_mask` `[B, L]` marks set to 0."""
    return rows if padding_mask is None else rows.masked_fill(padding_mask[:, None, :, None], 0)
