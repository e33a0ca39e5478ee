"""Vertical routing (Duan et al. 2020, Alg. 2), with its gradient.

The rows of `V_l` are the votes `e_{l,h}` of all heads for position `l`, and `c_l` are their couplings. An iteration is

    S_l = c_l V_l                         the sum, Eq. 7
    u_l = f(‖S_l‖²) S_l                   squashed, Eq. 6
    B_l += V_l u_l                        the agreements, Alg. 1
    c   = softmax over l of B             the next couplings

Couplings and capsules are small compared with the votes. The gradient is implemented here, because autograd saves and
adds a tensor of the votes' size in each iteration. Here the gradient of the votes, a sum of outer products, is one
matrix product.
"""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from capsule_routing.functions.precision import in_float32, without_autocast
from capsule_routing.functions.squash import curvatures, norm_parts, squash_gradient


@in_float32
def vertical_routing(
    logits: Tensor, iterations: int, *, padding_mask: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor]:
    """Route heads to query positions (Duan et al. 2020, Alg. 2 up to `Ω` and `B`).

    Args:
        logits: `E` `[B, H, L, K]`, the scaled products of queries and keys; 0 at padded queries and keys.
        iterations: routing iterations; fewer than 1 raise a ValueError.
        padding_mask: `[B, L]`, True marks padded queries.

    Returns:
        The output capsules `Ω` `[B, L, K]`, 0 at padded queries, and the vote weights `B` `[B, H, L]`, the last
        agreement included.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
    capsules, weights = _VerticalRouting.apply(logits.transpose(1, 2).contiguous(), iterations, padding_mask)
    return capsules, weights.transpose(1, 2)


class _VerticalRouting(torch.autograd.Function):
    """Votes `[B, L, H, K]`. Internally each position of the batch is a separate problem, `N = B·L`."""

    @staticmethod
    def forward(ctx: Any, votes: Tensor, iterations: int, padding_mask: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        shape = votes.shape[:3]
        rows = votes.flatten(0, 1)  # [N, H, K]
        start = weights = votes.new_zeros(shape)
        if padding_mask is not None:
            # Not minus infinity, so that the softmax is finite if a sentence has only padding. Its votes are 0.
            start.masked_fill_(padding_mask.unsqueeze(-1), torch.finfo(votes.dtype).min)
        kept: List[Tensor] = []
        for _ in range(iterations):
            coupling = weights.softmax(dim=1).view(-1, 1, shape[2])
            sums = coupling @ rows  # [N, 1, K]
            inverse, divisor = norm_parts(torch.linalg.vector_norm(sums, dim=-1, keepdim=True))
            squashed = sums / divisor
            weights = torch.baddbmm(weights.view(-1, shape[2], 1), rows, squashed.transpose(1, 2)).view(shape)
            kept += [coupling, squashed, inverse, divisor]
        ctx.save_for_backward(rows, *kept)
        ctx.shape = votes.shape
        return squashed.view(*shape[:2], -1), weights if padding_mask is None else weights - start

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, capsules_gradient: Tensor, weights_gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        with without_autocast(capsules_gradient.device.type):
            return _backward(ctx, capsules_gradient, weights_gradient), None, None


def _backward(ctx: Any, capsules_gradient: Tensor, weights_gradient: Tensor) -> Tensor:
    rows, *kept = ctx.saved_tensors
    couplings, capsules, inverses, divisors = (kept[part::4] for part in range(4))
    slopes = curvatures(inverses)
    by_position = weights_gradient.shape
    weights_gradient = weights_gradient.reshape(-1, 1, by_position[2])  # [N, 1, H]
    squashed_gradient = torch.baddbmm(capsules_gradient.reshape(len(rows), 1, -1), weights_gradient, rows)
    # The gradient of the votes is the sum of the outer products of these two lists.
    of_heads: List[Tensor] = []
    of_keys: List[Tensor] = []
    for i in reversed(range(len(couplings))):
        coupling = couplings[i]
        sums_gradient = squash_gradient(squashed_gradient, capsules[i], divisors[i], slopes[i])
        of_heads += [weights_gradient, coupling]
        of_keys += [capsules[i], sums_gradient]
        if i == 0:
            break
        coupling_gradient = rows @ sums_gradient.transpose(1, 2)
        logits_gradient = torch.ops.aten._softmax_backward_data(
            coupling_gradient.view(by_position), coupling.view(by_position), 1, rows.dtype
        )
        # A weight is the sum of all agreements so far, so the gradient of an agreement sums over all later weights.
        weights_gradient = weights_gradient + logits_gradient.view(weights_gradient.shape)
        squashed_gradient = weights_gradient @ rows
    return (torch.cat(of_heads, 1).transpose(1, 2) @ torch.cat(of_keys, 1)).view(ctx.shape)
