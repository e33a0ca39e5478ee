"""Positional routing (Duan et al. 2020, Alg. 3) of all positions at once, with its gradient.

For each position `l` the votes `e_1 … e_l` of each head are routed to the heads. The rows of `V_h` are the votes of a
head. `R_h` is a lower triangular matrix; its row `l` has the couplings of routing `l`. For all `l` together,

    S_h = R_h V_h                         the sums, Eq. 7
    u_h = f(‖S_h‖²) S_h                   squashed, Eq. 6
    B_h += u_h V_hᵀ                       the agreements, Alg. 1
    R_h = tril(softmax over h of B_h)     the next couplings

The first couplings are uniform. Votes may be given as coordinates in a basis `k` (`e = V kᵀ`). Products of votes are
then `V (kᵀk) Vᵀ`, and only the couplings are quadratic in length.

At typical sentence lengths the cost is passes over `[B, H, L, L]`, not products. The gradient is implemented here,
because autograd needs more passes and saves more matrices. Here only couplings and tensors of the votes' size are
saved.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from capsule_routing.functions.precision import without_autocast
from capsule_routing.functions.squash import curvatures, norm_parts, squash_gradient


def positional_routing(votes: Tensor, iterations: int, basis: Optional[Tensor] = None) -> Tensor:
    """Route the votes up to each position to the heads. Returns the squashed capsules.

    The votes are `votes` `[B, H, L, D]`, or with a basis `[B, H, K, D]` they are `votes basisᵀ`; rows of 0 are
    excluded. The capsules are `[B, H, L, D]`, or with a basis `[B, H, L, K]`.
    """
    return _PositionalRouting.apply(votes, basis, iterations)


class _PositionalRouting(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, votes: Tensor, basis: Optional[Tensor], iterations: int) -> Tensor:
        batch, heads, length, _ = votes.shape
        metric = None if basis is None else basis.transpose(2, 3) @ basis
        coupling = votes.new_full((length, length), 1 / heads).tril_().expand(batch, heads, -1, -1)
        weights = None
        kept = []
        for iteration in range(iterations):
            sums = coupling @ votes
            measured = None if metric is None else sums @ metric
            inverse, divisor = norm_parts(_norm(sums, measured))
            kept += [coupling, inverse, divisor]
            if iteration == iterations - 1:
                squashed = sums / divisor
            else:
                squashed = (sums if measured is None else measured) / divisor
                weights = _add_product(weights, squashed, votes.transpose(2, 3))
                coupling = weights.softmax(dim=1).tril_()
            kept += [squashed, *([] if measured is None else [sums, measured])]
        ctx.iterations = iterations
        ctx.save_for_backward(votes, basis, *kept)
        return squashed if basis is None else squashed @ basis.transpose(2, 3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        with without_autocast(gradient.device.type):
            return (*_backward(ctx, gradient), None)


def _backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
    votes, basis, *kept = ctx.saved_tensors
    last, size = ctx.iterations - 1, len(kept) // ctx.iterations
    couplings, inverses, divisors, squashed, *metrical = (kept[part::size] for part in range(size))
    slopes = list(zip(divisors, curvatures(inverses)))

    # capsules = f(n) S with n = S · M and M = S metric
    metric = basis_gradient = metric_gradient = None
    if basis is None:
        sums_gradient = squash_gradient(gradient, squashed[last], *slopes[last])
    else:
        sums, measured = metrical
        metric = basis.transpose(2, 3) @ basis
        basis_gradient = gradient.transpose(2, 3) @ squashed[last]
        scaled, n_gradient = _metrical_gradient(gradient @ basis, squashed[last], *slopes[last])
        sums_gradient = scaled.addcmul_(n_gradient, measured[last], value=2)
        metric_gradient = sums[last].transpose(2, 3) @ (sums[last] * n_gradient)

    votes_gradient = weights_gradient = None
    for i in reversed(range(last)):
        # S' = R V and R = tril(softmax(B)). The zeros of R above the diagonal also stop the gradient there.
        coupling = couplings[i + 1]
        votes_gradient = _add_product(votes_gradient, coupling.transpose(2, 3), sums_gradient)
        coupling_gradient = sums_gradient @ votes.transpose(2, 3)
        logits_gradient = torch.ops.aten._softmax_backward_data(coupling_gradient, coupling, 1, votes.dtype)
        # A weight is the sum of all agreements so far, so the gradient of an agreement sums over all later weights.
        weights_gradient = logits_gradient if weights_gradient is None else weights_gradient.add_(logits_gradient)

        # B += (f(n) M) Vᵀ
        votes_gradient = _add_product(votes_gradient, weights_gradient.transpose(2, 3), squashed[i])
        squashed_gradient = weights_gradient @ votes
        if metric is None:
            sums_gradient = squash_gradient(squashed_gradient, squashed[i], *slopes[i])
        else:
            scaled, n_gradient = _metrical_gradient(squashed_gradient, squashed[i], *slopes[i])
            measure_gradient = scaled.addcmul_(n_gradient, sums[i])
            metric_gradient = _add_product(metric_gradient, sums[i].transpose(2, 3), measure_gradient)
            sums_gradient = _add_product(n_gradient * measured[i], measure_gradient, metric)

    votes_gradient = _add_product(votes_gradient, couplings[0].transpose(2, 3), sums_gradient)
    if metric_gradient is not None:
        basis_gradient = _add_product(basis_gradient, basis, metric_gradient + metric_gradient.transpose(2, 3))
    return votes_gradient, basis_gradient


def _norm(sums: Tensor, measured: Optional[Tensor]) -> Tensor:
    """Compute the norms of sums. With a metric, `measured` is `sums @ metric`; a square below 0 by rounding gives 0."""
    if measured is None:
        return torch.linalg.vector_norm(sums, dim=-1, keepdim=True)
    return (sums * measured).sum(-1, keepdim=True).relu_().sqrt_()


def _metrical_gradient(gradient: Tensor, squashed: Tensor, divisor: Tensor, curvature: Tensor) -> Tuple[Tensor, Tensor]:
    """Compute the gradients of `squashed = f(n) x` with respect to `x`, for fixed `n`, and to `n`."""
    along = (gradient * squashed).sum(-1, keepdim=True).mul_(curvature).div_(divisor)
    return gradient / divisor, along.mul_(0.5)


def _add_product(total: Optional[Tensor], left: Tensor, right: Tensor) -> Tensor:
    """Return `total + left @ right`, in place if `total` is not None."""
    if total is None:
        return left @ right
    total.flatten(0, 1).baddbmm_(left.flatten(0, 1), right.flatten(0, 1))
    return total
