"""Additive scores `U tanh(a + b)` of all pairs, with their gradient, without keeping anything of the pairs' size.

The exponential of a sum is a product: with `A = exp 2a` and `B = exp 2b`,

    tanh(a + b) = 1 - 2 ρ,   ρ = 1 / (1 + A B),   d tanh(a + b) = 4 ρ (1 - ρ)

so that exponentials are taken of the parts alone, and a pair costs a product and a reciprocal. Pairs are gone through
in blocks that stay in a CPU's cache; the backward pass computes `ρ` again.
"""

from typing import Iterator, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Elements of a block of pairs: two megabytes in float32, measured best, on a CPU; on a GPU enough to fill it.
BLOCK = {"cpu": 2**19, "cuda": 2**24}


def additive_scores(left: Tensor, right: Tensor, vectors: Tensor) -> Tensor:
    """`Σ_D vectors · tanh(left + right)` for every pair of a left and a right position of a sentence.

    In float32 `left` and `right` are taken as at most 43 in size each, in float64 as at most 350: beyond, a tanh is
    saturated unless both are and cancel out.

    Args:
        left: `[B, T, J, D]`.
        right: `[B, I, J, D]`.
        vectors: `[K, D]`.

    Returns:
        Scores `[B, T, I, J, K]`.
    """
    return _AdditiveScores.apply(left, right, vectors)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left: Tensor, right: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(left, right, vectors)
        scores = left.new_empty(left.size(0), left.size(1), right.size(1), left.size(2), vectors.size(0))
        for rows, steps, ratios in _blocks(left, right):
            scores[rows, steps] = ratios @ vectors.t()
        return scores.mul_(-2).add_(vectors.sum(-1))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> Tuple[Tensor, ...]:
        left, right, vectors = ctx.saved_tensors
        left_gradient = torch.empty_like(left)
        right_gradient = torch.zeros_like(right)
        vectors_gradient = torch.zeros_like(vectors)
        with torch.autocast(gradient.device.type, enabled=False):
            for rows, steps, ratios in _blocks(left, right):
                block = gradient[rows, steps]
                vectors_gradient.addmm_(block.flatten(0, -2).t(), ratios.flatten(0, -2), alpha=-2)
                slopes = torch.addcmul(ratios, ratios, ratios, value=-1)
                slopes.mul_(block @ vectors if vectors.size(0) > 1 else block * vectors)
                left_gradient[rows, steps] = slopes.sum(2)
                right_gradient[rows] += slopes.sum(1)
            vectors_gradient += gradient.flatten(0, -2).sum(0).unsqueeze(-1)
        return left_gradient.mul_(4), right_gradient.mul_(4), vectors_gradient


def _blocks(left: Tensor, right: Tensor) -> Iterator[Tuple[slice, slice, Tensor]]:
    """Sentences, left positions and their `ρ` `[b, t, I, J, D]`, valid until the next block."""
    sentences, steps = left.shape[:2]
    # Left positions in a block: those of several sentences, or some of one.
    positions = max(1, BLOCK.get(left.device.type, BLOCK["cuda"]) // max(1, right.shape[1:].numel()))
    many_sentences, many_steps = max(1, positions // max(1, steps)), max(1, min(positions, steps))
    limit = 43 if left.dtype == torch.float32 else 350
    for first in range(0, sentences, many_sentences):
        rows = slice(first, first + many_sentences)
        exponential = _exponential(right[rows], limit).unsqueeze(1)
        for start in range(0, steps, many_steps):
            part = slice(start, start + many_steps)
            ratios = _exponential(left[rows, part], limit).unsqueeze(2) * exponential
            yield rows, part, ratios.add_(1).reciprocal_()


def _exponential(part: Tensor, limit: float) -> Tensor:
    return part.clamp(-limit, limit).mul_(2).exp_()
