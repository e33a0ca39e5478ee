"""The non-linearities of routing."""

from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_capsule.routing.precision import in_float32

# A softmax over a last dimension shorter than this runs several times faster as one over the first.
FEW = 32


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


def curvature(inverse: Tensor) -> Tensor:
    """What the gradient of squashing multiplies with: with `i = 1/‖s‖` and `u` the squashed capsule that gradient is
    `g / (‖s‖ + i) + c (g · u) u`, and `c = i³ - i`.

    Args:
        inverse: `i`, which is overwritten. At 0, where it is infinite, the result is finite, since `u` is 0 there.
    """
    largest = 0.99 * torch.finfo(inverse.dtype).max ** (1 / 3)
    inverse.clamp_(max=largest)
    return inverse.pow(3).sub_(inverse)


def curvatures(parts: Sequence[NormParts]) -> List[Tensor]:
    """The curvatures of several iterations, in as many kernels as those of one."""
    return list(curvature(torch.stack([part.inverse for part in parts])))


def squash_gradient(
    gradient: Tensor, squashed: Tensor, divisor: Tensor, curvature: Tensor, dim: Union[int, Tuple[int, ...]] = -1
) -> Tensor:
    """The gradient of a loss by `s`, from its gradient by `squashed = squash(s, dim)`; `divisor` is that of the norms
    of `s`."""
    along = (gradient * squashed).sum(dim, keepdim=True).mul_(curvature)
    return (gradient / divisor).addcmul_(along, squashed)


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
        squashed, inverse, divisor = ctx.saved_tensors
        return squash_gradient(gradient, squashed, divisor, curvature(inverse.clone()), ctx.dim), None


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
