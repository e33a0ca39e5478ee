"""The routings as plain PyTorch: autograd computes the gradients, and `torch.compile` sees one graph.

The signatures are those of `capsule_routing.functions`. `routing_forms.py` and `compare.py` measure these forms against
the hand-written gradients of the package. Half precision needs `in_float32` or `compiled`.
"""

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor

# With fewer keys than this times their rank, products of the logits themselves are cheaper than those of their factors.
FACTORS_PAY = 2


def squash(s: Tensor, dim: int = -1) -> Tensor:
    """Squash capsules: `s · n / (1 + n²)` with `n = ‖s‖` (Duan et al. 2020, Eq. 6).

    The gradient at 0 is 0. The second derivative at 0 is NaN.
    """
    norm = torch.linalg.vector_norm(s, dim=dim, keepdim=True)
    return s * (norm / (1 + norm.square()))


def vertical_routing(
    logits: Tensor, iterations: int, *, padding_mask: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor]:
    """Route heads to query positions (Duan et al. 2020, Alg. 2 up to `Ω` and `B`).

    Args:
        logits: `E` `[B, H, L, K]`, 0 at padded queries and keys.
        iterations: routing iterations, at least 1.
        padding_mask: `[B, L]`, True marks padded queries.

    Returns:
        The output capsules `Ω` `[B, L, K]` and the vote weights `B` `[B, H, L]`, both 0 at padded queries.
    """
    votes = logits.transpose(1, 2).contiguous()  # [B, L, H, K]
    weights = votes.new_zeros(votes.shape[:3])
    for _ in range(iterations):
        competing = weights
        if padding_mask is not None:
            # Not minus infinity, so that the softmax is finite if a sentence has only padding. Its votes are 0.
            competing = weights.masked_fill(padding_mask.unsqueeze(2), torch.finfo(votes.dtype).min)
        coupling = competing.softmax(1)
        capsules = squash(coupling.unsqueeze(2) @ votes)  # [B, L, 1, K]
        weights = weights + (votes @ capsules.mT).squeeze(3)
    return capsules.squeeze(2), weights.transpose(1, 2)


def horizontal_routing(
    logits: Tensor,
    iterations: int,
    *,
    padding_mask: Optional[Tensor] = None,
    causal: bool = False,
    factors: Optional[Tuple[Tensor, Tensor]] = None,
) -> Tensor:
    """For each position, route the tokens up to it to heads (Duan et al. 2020, Alg. 3).

    Args:
        logits: `E` `[B, H, L, K]`, 0 at padded keys.
        iterations: routing iterations, at least 1.
        padding_mask: `[B, L]`, True marks padded queries.
        causal: whether keys after a query are left out of its votes. The cost is then cubic in length.
        factors: `(q [B, H, L, d], k [B, H, K, d])` with `logits = q kᵀ`. They make the cost quadratic in length; used
            where that is faster, and not if `causal`.

    Returns:
        The output capsules `Ω` `[B, H, L, K]`, 0 at padded queries.
    """
    batch, heads, length, words = logits.shape
    factored = factors is not None and not causal and words >= FACTORS_PAY * factors[0].size(3)
    votes, keys = factors if factored else (logits.tril() if causal else logits, None)
    padding = None if padding_mask is None else padding_mask[:, None, :, None]
    if padding is not None:
        votes = votes.masked_fill(padding, 0)
    coupling = votes.new_full((length, length), 1 / heads).tril().expand(batch, heads, -1, -1)
    weights = None
    for iteration in range(iterations):
        sums = coupling @ votes
        capsules = squash(sums if keys is None else sums @ keys.mT)
        if iteration < iterations - 1:
            agreement = (capsules if keys is None else capsules @ keys) @ votes.mT
            weights = agreement if weights is None else weights + agreement
            coupling = weights.softmax(1).tril()
    return capsules if padding is None else capsules.masked_fill(padding, 0)


def dynamic_routing(votes: Tensor, iterations: int, *, padding_mask: Optional[Tensor] = None) -> Tensor:
    """Route input capsules to output capsules by agreement (Sabour et al. 2017, Procedure 1).

    Args:
        votes: `[..., M, N, D]`, the vote of each of `M` inputs for each of `N` outputs.
        iterations: how often coupling and capsules are computed, at least 1.
        padding_mask: `[..., M]`, True marks excluded inputs.

    Returns:
        The output capsules `[..., N, D]`.
    """
    if padding_mask is not None:
        votes = votes.masked_fill(padding_mask[..., None, None], 0)
    votes = votes.transpose(-3, -2).contiguous()  # [..., N, M, D]
    logits = votes.new_zeros(votes.shape[:-1])
    for iteration in range(iterations):
        coupling = logits.softmax(-2)
        capsules = squash(coupling.unsqueeze(-2) @ votes)  # [..., N, 1, D]
        if iteration < iterations - 1:
            logits = logits + (votes @ capsules.mT).squeeze(-1)
    return capsules.squeeze(-2)


def compiled(function: Callable[..., Any], backend: str = "inductor") -> Callable[..., Any]:
    """Compile a routing to one graph for all lengths. The conversion of half precision is a part of it.

    The first argument is converted to float32, and the results back. Autocast must be off: torch 2.11 cannot trace
    `in_float32`, which turns it off.
    """

    def routed(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = function(tensor.to(torch.promote_types(tensor.dtype, torch.float32)), *args, **kwargs)
        if isinstance(result, tuple):
            return tuple(part.to(tensor.dtype) for part in result)
        return result.to(tensor.dtype)

    return torch.compile(routed, fullgraph=True, dynamic=True, backend=backend)
