"""Routing on attention logits (Duan et al. 2020, §3.4), without a loop over positions.

A row `e_{l,h}` of a head's logits `E_h` is a vote; routing only ever takes sums and dot products of votes.
docs/capsule-transformer.md derives the products that stand here for the paper's loops.
"""

from typing import Optional, Tuple

from torch import Tensor

from fairseq_capsule.routing.positional import positional_routing
from fairseq_capsule.routing.precision import in_float32
from fairseq_capsule.routing.squash import squash
from fairseq_capsule.routing.vertical import route_heads

# With fewer keys than this times their rank, products of the logits themselves are cheaper than those of their factors.
FACTORS_PAY = 2


@in_float32
def vertical_routing(
    logits: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    key_padding_mask: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """Vertical routing: heads are routed to query positions (Duan et al. 2020, Alg. 2 up to `Ω` and `B`).

    Args:
        logits: `[B, H, L, K]`, the scaled products of queries and keys.
        iterations: routing iterations, at least 1.
        padding_mask: `[B, L]`, True marks padded queries.
        key_padding_mask: `[B, K]`, True marks padded keys.

    Returns:
        The output capsules `Ω` `[B, L, K]`, 0 at padded queries, and the vote weights `B` `[B, H, L]`, the last
        agreement included.

    Raises:
        ValueError: fewer than 1 iteration.
    """
    _check(iterations)
    votes = _clean(logits, padding_mask, key_padding_mask).transpose(1, 2)
    capsules, weights = route_heads(votes, iterations, padding_mask)
    return capsules, weights.transpose(1, 2)


@in_float32
def horizontal_routing(
    logits: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    key_padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    factors: Optional[Tuple[Tensor, Tensor]] = None,
) -> Tensor:
    """Horizontal routing: for each position, the tokens up to it are routed to heads (Duan et al. 2020, Alg. 3).

    Args:
        logits: `[B, H, L, K]`, the scaled products of queries and keys.
        iterations: routing iterations, at least 1.
        padding_mask: `[B, L]`, True marks padded queries.
        key_padding_mask: `[B, K]`, True marks padded keys.
        causal: whether keys after a query are left out of its votes, as in a decoder (§3.4.3).
        factors: `(q [B, H, L, d], k [B, H, K, d])` with `logits = q kᵀ`. The rank `d` of the logits makes the cost
            quadratic in length instead of cubic; of no use, and ignored, where `causal` cuts into them.

    Returns:
        The output capsules `Ω` `[B, H, L, K]`, 0 at padded queries.

    Raises:
        ValueError: fewer than 1 iteration.
    """
    _check(iterations)
    if factors is None or causal or logits.size(3) < FACTORS_PAY * factors[0].size(3):
        votes, basis = _clean(logits, padding_mask, key_padding_mask), None
        votes = votes.tril() if causal else votes
    else:
        votes, basis = _zero(factors[0], padding_mask), _zero(factors[1], key_padding_mask)
    return _zero(positional_routing(votes, iterations, basis), padding_mask)


@in_float32
def route_last_token(logits: Tensor, iterations: int) -> Tensor:
    """The last of the routings of `horizontal_routing(logits, iterations, causal=True)`, for decoding step by step.

    Args:
        logits: `[B, H, L, L]` of the whole prefix; what is above the diagonal is not read.
        iterations: routing iterations, at least 1.

    Returns:
        The last position's output capsules `[B, H, 1, L]`.
    """
    _check(iterations)
    votes = logits.tril()
    sums = votes.sum(2, keepdim=True) / votes.size(1)
    weights = 0
    for _ in range(iterations - 1):
        weights = weights + squash(sums) @ votes.transpose(2, 3)
        sums = weights.softmax(dim=1) @ votes
    return squash(sums)


def _check(iterations: int) -> None:
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")


def _zero(rows: Tensor, padding_mask: Optional[Tensor]) -> Tensor:
    """Rows `[B, H, L, D]` with those that `padding_mask` `[B, L]` marks set to 0."""
    return rows if padding_mask is None else rows.masked_fill(padding_mask[:, None, :, None], 0)


def _clean(logits: Tensor, padding_mask: Optional[Tensor], key_padding_mask: Optional[Tensor]) -> Tensor:
    """Logits whose padded rows and columns are 0, so that they add nothing to a norm or a product."""
    logits = _zero(logits, padding_mask)
    return logits if key_padding_mask is None else logits.masked_fill(key_padding_mask[:, None, None, :], 0)
