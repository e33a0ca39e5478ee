"""The non-linearities of routing."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_capsule.routing.precision import in_float32

# A softmax over a last dimension shorter than this runs several times faster as one over the first.
FEW = 32


def squash_scale(squared_norm: Tensor) -> Tensor:
    """The factor `‖s‖/(1+‖s‖²)` by which squashing multiplies a capsule, from its squared norm of any shape.

    A squared norm may come from dot products and fall below 0 by rounding; it counts as 0. There the factor and its
    gradient are exactly 0, where a square root alone would give an infinite one.
    """
    square = squared_norm.relu()  # whose gradient is chosen, not multiplied: nothing infinite comes through at 0
    return square.sqrt() / (1 + square)


def squash_scale_derivative(squared_norm: Tensor) -> Tensor:
    """The derivative of `squash_scale` by the squared norm `n`: `(1-n)/(2√n(1+n)²)`, and 0 where `n ≤ 0`."""
    # With f the scale it is f (1/(1+n) - 1/2) / n; where f is exactly 0, so is the result.
    square = squared_norm.relu()
    divisor = 1 + square
    scale = square.sqrt() / divisor
    slope = torch.addcdiv(scale, scale, divisor, value=-2)
    return slope.div_(square.clamp_(min=torch.finfo(square.dtype).tiny)).mul_(-0.5)


@in_float32
def squash(s: Tensor, dim: int = -1) -> Tensor:
    """Squash capsules: `s·‖s‖/(1+‖s‖²)` (Sabour et al. 2017, Eq. 1; Duan et al. 2020, Eq. 6).

    Args:
        s: capsules before squashing, of any shape.
        dim: the dimension of the capsules' components.

    Returns:
        A tensor of `s`'s shape whose vectors along `dim` have norms below 1: exactly 0, with a zero gradient, at 0.
    """
    if torch.is_grad_enabled() and s.requires_grad:
        return _Squash.apply(s, dim)
    return s / norm_parts(torch.linalg.vector_norm(s, dim=dim, keepdim=True)).divisor


class NormParts(NamedTuple):
    """What squashing computes of norms `‖s‖`, and what its gradient reads; both of the norms' shape.

    Attributes:
        inverse: `1/‖s‖`, infinite at 0.
        divisor: `‖s‖ + 1/‖s‖`, likewise: the squashed capsule is `s` by it.
    """

    inverse: Tensor
    divisor: Tensor


def norm_parts(norm: Tensor) -> NormParts:
    """The parts of norms, which are overwritten."""
    inverse = norm.reciprocal()
    return NormParts(inverse, norm.add_(inverse))


class Slopes(NamedTuple):
    """What the gradient of squashing multiplies with: with `i = 1/‖s‖` and `u` the squashed capsule it is
    `f g + c (g · u) u`.

    Attributes:
        scale: `f = 1/(‖s‖ + i)`, 0 at `s = 0`.
        curvature: `c = i (i - 2f)/f`; at `s = 0`, where it is multiplied by 0, the largest number.
    """

    scale: Tensor
    curvature: Tensor


def slopes(parts: NormParts) -> Slopes:
    """The slopes at norms, of whose shape they are."""
    inverse, divisor = parts
    scale = divisor.reciprocal()
    curvature = torch.add(inverse, scale, alpha=-2).mul_(inverse).mul_(divisor)
    return Slopes(scale, curvature.clamp_(max=torch.finfo(inverse.dtype).max))


def slopes_of_all(parts: Sequence[NormParts]) -> List[Slopes]:
    """The slopes of several iterations, in as many kernels as those of one."""
    inverses, divisors = zip(*parts)
    scales, curvatures = slopes(NormParts(torch.stack(inverses), torch.stack(divisors)))
    return [Slopes(*of_one) for of_one in zip(scales, curvatures)]


def squash_gradient(gradient: Tensor, squashed: Tensor, slopes: Slopes, dim: int = -1) -> Tensor:
    """The gradient of a loss by `s`, from its gradient by `squashed = squash(s, dim)` and the slopes at `s`."""
    along = (gradient * squashed).sum(dim, keepdim=True).mul_(slopes.curvature)
    return (gradient * slopes.scale).addcmul_(along, squashed)


class _Squash(torch.autograd.Function):
    """Autograd's own derivative takes twice as many passes over the capsules."""

    @staticmethod
    def forward(ctx, s: Tensor, dim: int) -> Tensor:
        parts = norm_parts(torch.linalg.vector_norm(s, dim=dim, keepdim=True))
        squashed = s / parts.divisor
        ctx.save_for_backward(squashed, *parts)
        ctx.dim = dim
        return squashed

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> Tuple[Tensor, None]:
        squashed, *parts = ctx.saved_tensors
        return squash_gradient(gradient, squashed, slopes(NormParts(*parts)), ctx.dim), None


@in_float32
def leaky_softmax(logits: Tensor, dim: int) -> Tensor:
    """Softmax with one more logit, fixed at 0, whose share is dropped (Zhao et al. 2018; CapsNMT preprint).

    An input capsule that agrees with no output capsule may so stay with none: the result sums to less than 1 along
    `dim`. Logits of minus infinity give 0, also where all of them are.
    """
    highest = logits.amax(dim, keepdim=True).clamp(min=0).detach()
    exponentials = (logits - highest).exp()
    return exponentials / (exponentials.sum(dim, keepdim=True) + (-highest).exp())


def masked_softmax(logits: Tensor, dim: int, mask: Optional[Tensor], softmax=torch.softmax) -> Tensor:
    """A softmax over what `mask`, which broadcasts against `logits`, does not mark; what it marks gets exactly 0.

    Where all of `dim` is marked all is 0, with a zero gradient. `softmax` may be `leaky_softmax` too.
    """
    if logits.dim() > 1 and dim in (-1, logits.dim() - 1) and logits.size(-1) < FEW:
        mask = None if mask is None else mask.expand_as(logits).movedim(-1, 0)
        return masked_softmax(logits.movedim(-1, 0).contiguous(), 0, mask, softmax).movedim(0, -1)
    if mask is None:
        return softmax(logits, dim)
    # The lowest finite number rather than minus infinity: where all is marked the softmax is then uniform instead of
    # NaN, and the zeros written afterwards stop the gradient.
    return softmax(logits.masked_fill(mask, torch.finfo(logits.dtype).min), dim).masked_fill(mask, 0)
