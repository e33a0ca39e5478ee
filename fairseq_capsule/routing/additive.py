"""Additive scores `U tanh(a + b)` of all pairs, with their gradient, without keeping anything of the pairs' size.

The exponential of a sum is a product: with `A = exp 2a` and `B = exp 2b`,

    tanh(a + b) = 1 - 2 ρ,   ρ = 1 / (1 + A B),   d tanh(a + b) = 4 ρ (1 - ρ)

so that exponentials are taken of the parts alone, and a pair costs a product and a reciprocal. Pairs are gone through
in blocks that stay in a CPU's cache; the backward pass computes `ρ` again.
"""

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_capsule.routing.precision import in_float32

# Elements of a block of pairs: four megabytes in float32, measured best, on a CPU; on a GPU enough to fill it.
BLOCK = {"cpu": 2**20, "cuda": 2**24}


def squared_exponential(part: Tensor) -> Tensor:
    """`exp 2a`, without a gradient, in at least float32.

    `a` is cut to ±43 in float32, ±350 in float64: the result is finite and not 0, and no product of two is `0 · ∞`.
    """
    part = part.detach().to(torch.promote_types(part.dtype, torch.float32))
    limit = 43 if part.dtype == torch.float32 else 350
    return part.clamp(-limit, limit).mul_(2).exp_()


@in_float32
def additive_scores(
    left: Tensor, right: Optional[Tensor], vectors: Tensor, right_exponential: Optional[Tensor] = None
) -> Tensor:
    """`Σ_D vectors · tanh(left + right)` for every pair of a left and a right position of a sentence.

    Where a part is beyond the range of `squared_exponential` and the other comes near its opposite, the score is that
    of the range's end.

    Args:
        left: `[B, T, J, D]`, or `[B, T, 1, D]` where it is the same for all `J`.
        right: `[B, I, J, D]`; None where its exponential is at hand and no gradient is wanted.
        vectors: `[K, D]`.
        right_exponential: `squared_exponential(right)` where it is at hand.

    Returns:
        Scores `[B, T, I, J, K]`.

    Raises:
        ValueError: neither `right` nor its exponential.
    """
    if right_exponential is None:
        if right is None:
            raise ValueError("additive_scores needs right parts or their exponentials")
        right_exponential = squared_exponential(right)
    return _AdditiveScores.apply(left, right, vectors, right_exponential)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left: Tensor, right: Optional[Tensor], vectors: Tensor, right_exponential: Tensor) -> Tensor:
        left_exponential = squared_exponential(left)
        ctx.save_for_backward(left_exponential, right_exponential, vectors)
        scores = left.new_empty(*left.shape[:2], *right_exponential.shape[1:3], len(vectors))
        for rows, steps, ratios in _blocks(left_exponential, right_exponential):
            scores[rows, steps] = ratios @ vectors.t()
        return scores.mul_(-2).add_(vectors.sum(-1))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        left_exponential, right_exponential, vectors = ctx.saved_tensors
        left_gradient = torch.empty_like(left_exponential)
        right_gradient = torch.zeros_like(right_exponential)
        vectors_gradient = torch.zeros_like(vectors)
        one_vector = len(vectors) == 1
        own_left = left_exponential.size(2) == right_exponential.size(2)
        with torch.autocast(gradient.device.type, enabled=False):
            for rows, steps, ratios in _blocks(left_exponential, right_exponential):
                block = gradient[rows, steps]
                vectors_gradient.addmm_(block.flatten(0, -2).t(), ratios.flatten(0, -2), alpha=-2)
                slopes = ratios.addcmul_(ratios, ratios, value=-1).mul_(block if one_vector else block @ vectors)
                left_gradient[rows, steps] = slopes.sum(2) if own_left else slopes.sum((2, 3)).unsqueeze(2)
                right_gradient[rows] += slopes.sum(1)
            vectors_gradient += gradient.flatten(0, -2).sum(0).unsqueeze(-1)
        # What all pairs are multiplied with alike may wait for the sums.
        scale = 4 * vectors[0] if one_vector else 4
        return left_gradient.mul_(scale), right_gradient.mul_(scale), vectors_gradient, None


def _blocks(left: Tensor, right: Tensor) -> Iterator[Tuple[slice, slice, Tensor]]:
    """Sentences, left positions and their `ρ` `[b, t, I, J, D]`, valid until the next, from the parts' exponentials."""
    sentences, steps = left.shape[:2]
    # Left positions in a block: those of several sentences, or some of one.
    positions = max(1, BLOCK.get(left.device.type, BLOCK["cuda"]) // max(1, right.shape[1:].numel()))
    many_sentences, many_steps = max(1, positions // max(1, steps)), max(1, min(positions, steps))
    one = left.new_ones(())
    # One piece of memory for all blocks: to ask for a new one each time costs more than to fill it.
    ratios = left.new_empty(min(many_sentences, sentences), many_steps, *right.shape[1:])
    for first in range(0, sentences, many_sentences):
        rows = slice(first, first + many_sentences)
        for start in range(0, steps, many_steps):
            part = slice(start, start + many_steps)
            of_left = left[rows, part].unsqueeze(2)
            block = ratios[: of_left.size(0), : of_left.size(1)]
            yield rows, part, torch.addcmul(one, of_left, right[rows].unsqueeze(1), out=block).reciprocal_()
