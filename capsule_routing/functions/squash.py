"""The non-linearities of routing."""

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from capsule_routing.functions.precision import in_float32

# If the last dimension is shorter than this, a softmax over it is several times faster as one over the first dimension.
FEW = 32

Softmax = Callable[[Tensor, int], Tensor]


@in_float32
def squash(s: Tensor, dim: int = -1) -> Tensor:
    """Squash capsules: `s·‖s‖/(1+‖s‖²)` (Sabour et al. 2017, Eq. 1; Duan et al. 2020, Eq. 6).

    Args:
        s: capsules before squashing, of any shape. Norms are below the square root of the type's largest number, about
            1.8e19 in float32; the squares of larger ones overflow, and the result is 0.
        dim: the dimension of the capsules' components.

    Returns:
        A tensor with the shape of `s`. Its vectors along `dim` have norms below 1. A vector of 0 stays exactly 0, with
        a zero gradient.
    """
    if torch.is_grad_enabled() and s.requires_grad:
        return _Squash.apply(s, dim)
    return s / norm_parts(torch.linalg.vector_norm(s, dim=dim, keepdim=True))[1]


def norm_parts(norm: Tensor) -> Tuple[Tensor, Tensor]:
    """Return `1/‖s‖` and the divisor `‖s‖ + 1/‖s‖` of squashing, `u = s / divisor`; both are infinite at norm 0.

    `norm` is overwritten.
    """
    inverse = norm.reciprocal()
    return inverse, norm.add_(inverse)


def curvatures(inverses: Sequence[Tensor]) -> List[Tensor]:
    """Compute the factor `c = i³ - i` in the gradient of squashing, `g / (‖s‖ + i) + c (g · u) u` with `i = 1/‖s‖`.

    Several iterations need as many kernels as one. Where `i` is infinite, `c` is finite, because `u` is 0 there.
    """
    inverse = torch.stack(tuple(inverses))
    inverse.clamp_(max=0.99 * torch.finfo(inverse.dtype).max ** (1 / 3))
    return list(inverse.pow(3).sub_(inverse))


def squash_gradient(
    gradient: Tensor, squashed: Tensor, divisor: Tensor, curvature: Tensor, dim: Union[int, Tuple[int, ...]] = -1
) -> Tensor:
    """Compute the gradient of a loss with respect to `s`, from that with respect to `squashed = squash(s, dim)`.

    `divisor` is that of `norm_parts`, and `curvature` that of `curvatures`. `dim` may be several dimensions.
    """
    along = (gradient * squashed).sum(dim, keepdim=True).mul_(curvature)
    return (gradient / divisor).addcmul_(along, squashed)


class _Squash(torch.autograd.Function):
    """Squashing with its own gradient, because autograd needs twice as many passes over the capsules."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, dim: int) -> Tensor:
        inverse, divisor = norm_parts(torch.linalg.vector_norm(s, dim=dim, keepdim=True))
        squashed = s / divisor
        ctx.save_for_backward(squashed, inverse, divisor)
        ctx.dim = dim
        return squashed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, None]:
        squashed, inverse, divisor = ctx.saved_tensors
        return squash_gradient(gradient, squashed, divisor, curvatures([inverse])[0], ctx.dim), None


@in_float32
def leaky_softmax(logits: Tensor, dim: int) -> Tensor:
    """Softmax with an additional logit of 0; the share of this logit is dropped (Zhao et al. 2018; CapsNMT preprint).

    So an input capsule may go to no output capsule, and the result sums to less than 1 along `dim`. Logits of minus
    infinity give 0, even if all logits are.
    """
    highest = logits.amax(dim, keepdim=True).clamp(min=0).detach()
    exponentials = (logits - highest).exp()
    return exponentials / (exponentials.sum(dim, keepdim=True) + (-highest).exp())


def masked_softmax(logits: Tensor, dim: int, mask: Optional[Tensor], softmax: Softmax = torch.softmax) -> Tensor:
    """Softmax over the elements that are not masked. Masked elements get exactly 0.

    If all elements along `dim` are masked, the result is 0, with a zero gradient.

    Args:
        logits: a tensor of any shape.
        dim: the dimension of the softmax.
        mask: broadcasts against `logits`; True marks masked elements.
        softmax: `torch.softmax` or `leaky_softmax`.
    """
    if logits.dim() > 1 and dim in (-1, logits.dim() - 1) and logits.size(-1) < FEW:
        if mask is not None:
            logits, mask = torch.broadcast_tensors(logits, mask)
            mask = mask.movedim(-1, 0)
        return masked_softmax(logits.movedim(-1, 0).contiguous(), 0, mask, softmax).movedim(0, -1)
    if mask is None:
        return softmax(logits, dim)
    # The lowest finite number, not minus infinity: if all elements are masked, the softmax is then uniform instead of
    # NaN. The zeros that are filled in afterwards stop the gradient.
    return softmax(logits.masked_fill(mask, torch.finfo(logits.dtype).min), dim).masked_fill(mask, 0)
