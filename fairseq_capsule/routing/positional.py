"""Positional routing (Duan et al. 2020, Alg. 3) of all positions at once, with its gradient.

For each position `l` the votes `e_1 … e_l` of every head are routed to the heads. Let the rows of `V_h` be a head's
votes and `R_h` a lower triangular matrix whose row `l` holds the couplings of routing `l`. Then, for all `l` together,

    S_h = R_h V_h                         the sums, Eq. 7
    u_h = f(‖S_h‖²) S_h                   squashed, Eq. 6
    B_h += u_h V_hᵀ                       the agreements, Alg. 1
    R_h = tril(softmax over h of B_h)     the next couplings

and the first iteration, whose couplings are uniform, is a cumulative sum. Votes may be given as coordinates in a basis
`k` (`e = V kᵀ`): products of votes are then `V (kᵀk) Vᵀ`, and nothing but couplings is quadratic in length.

At the lengths of sentences, passes over `[B, H, L, L]` are the cost, not products. The gradient is written out because
autograd's own takes more passes and keeps more matrices: here couplings and sums are kept, all else is computed again.
"""

from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_capsule.autocast import without_autocast
from fairseq_capsule.routing.squash import squash_scale, squash_scale_derivative


def positional_routing(votes: Tensor, iterations: int, basis: Optional[Tensor] = None) -> Tensor:
    """Route the votes up to each position to the heads.

    Args:
        votes: `[B, H, L, D]`, rows of 0 take no part.
        iterations: routing iterations, at least 1.
        basis: `[B, H, K, D]` if the votes are coordinates and `votes basisᵀ` is meant; None if they are themselves.

    Returns:
        The squashed capsules, `[B, H, L, K]`, or `[B, H, L, D]` without a basis.
    """
    return _PositionalRouting.apply(votes, basis, iterations)


class _PositionalRouting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, votes: Tensor, basis: Optional[Tensor], iterations: int) -> Tensor:
        metric = None if basis is None else basis.transpose(2, 3) @ basis
        sums, measures, couplings = [votes.cumsum(2).div_(votes.size(1))], [], []
        weights = None
        for _ in range(iterations - 1):
            measures.append(_measure(sums[-1], metric))
            squashed = measures[-1] * squash_scale(_squared_norm(sums[-1], measures[-1]))
            weights = _add_product(weights, squashed, votes.transpose(2, 3))
            couplings.append(weights.softmax(dim=1).tril_())
            sums.append(couplings[-1] @ votes)
        measures.append(_measure(sums[-1], metric))
        capsules = sums[-1] * squash_scale(_squared_norm(sums[-1], measures[-1]))

        ctx.iterations = iterations
        ctx.with_basis = basis is not None
        # Without a metric the measured sums are the sums themselves.
        kept = (*couplings, *sums, *(measures if ctx.with_basis else ()))
        ctx.save_for_backward(votes, basis, *kept)
        return capsules if basis is None else capsules @ basis.transpose(2, 3)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        with without_autocast(gradient.device.type):
            return (*_backward(ctx, gradient), None)


def _backward(ctx, gradient: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
    votes, basis, *kept = ctx.saved_tensors
    last = ctx.iterations - 1
    couplings, sums = kept[:last], kept[last : last + ctx.iterations]
    measures = kept[last + ctx.iterations :] if ctx.with_basis else sums
    metric = None if basis is None else basis.transpose(2, 3) @ basis

    # capsules = f(n) S with n = S · M and M = S metric
    n = _squared_norm(sums[last], measures[last])
    scale = squash_scale(n)
    basis_gradient = metric_gradient = None
    if basis is not None:
        basis_gradient = gradient.transpose(2, 3) @ (sums[last] * scale)
        gradient = gradient @ basis
    n_gradient = squash_scale_derivative(n) * (gradient * sums[last]).sum(-1, keepdim=True)
    sums_gradient = gradient * scale
    if metric is None:
        sums_gradient = sums_gradient.addcmul_(n_gradient, sums[last], value=2)
    else:
        sums_gradient = sums_gradient.addcmul_(n_gradient, measures[last], value=2)
        metric_gradient = sums[last].transpose(2, 3) @ (sums[last] * n_gradient)

    votes_gradient = weights_gradient = None
    for i in reversed(range(last)):
        # S' = tril(softmax(B)) V: the coupling's zeros above the diagonal also stop the gradient there
        coupling_gradient = sums_gradient @ votes.transpose(2, 3)
        votes_gradient = _add_product(votes_gradient, couplings[i].transpose(2, 3), sums_gradient)
        logits_gradient = torch.ops.aten._softmax_backward_data(coupling_gradient, couplings[i], 1, votes.dtype)
        # a weight is the sum of all agreements so far: so is an agreement's gradient that of all weights from it on
        weights_gradient = logits_gradient if weights_gradient is None else weights_gradient.add_(logits_gradient)

        # B += (f(n) M) Vᵀ
        n = _squared_norm(sums[i], measures[i])
        scale = squash_scale(n)
        squashed_gradient = weights_gradient @ votes
        votes_gradient = _add_product(votes_gradient, weights_gradient.transpose(2, 3), measures[i] * scale)
        n_gradient = squash_scale_derivative(n) * (squashed_gradient * measures[i]).sum(-1, keepdim=True)
        measure_gradient = squashed_gradient.mul_(scale)
        if metric is None:
            sums_gradient = measure_gradient.addcmul_(n_gradient, sums[i], value=2)
        else:
            measure_gradient = measure_gradient.addcmul_(n_gradient, sums[i])
            metric_gradient = _add_product(metric_gradient, sums[i].transpose(2, 3), measure_gradient)
            sums_gradient = _add_product(n_gradient * measures[i], measure_gradient, metric)

    # S = cumsum(V) / H
    first = sums_gradient.flip(2).cumsum(2).flip(2).div_(votes.size(1))
    votes_gradient = first if votes_gradient is None else votes_gradient.add_(first)
    if metric_gradient is not None:
        basis_gradient = _add_product(basis_gradient, basis, metric_gradient + metric_gradient.transpose(2, 3))
    return votes_gradient, basis_gradient


def _measure(sums: Tensor, metric: Optional[Tensor]) -> Tensor:
    return sums if metric is None else sums @ metric


def _squared_norm(sums: Tensor, measured: Tensor) -> Tensor:
    return (sums * measured).sum(-1, keepdim=True)


def _add_product(total: Optional[Tensor], left: Tensor, right: Tensor) -> Tensor:
    """`total + left @ right`, written into `total` where there is one."""
    if total is None:
        return left @ right
    total.flatten(0, 1).baddbmm_(left.flatten(0, 1), right.flatten(0, 1))
    return total
