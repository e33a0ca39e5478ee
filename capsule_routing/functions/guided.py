"""Guided dynamic routing (Zheng et al. 2019, Alg. 1), and the additive scores `U tanh(a + b)` of all pairs.

The scores have a gradient of their own and keep nothing of the pairs' size. The exponential of a sum is a product: with
`A = exp 2a` and `B = exp 2b`,

    tanh(a + b) = 1 - 2 ρ,   ρ = 1 / (1 + A B),   d tanh(a + b) = 4 ρ (1 - ρ)

so only the parts need an exponential, and a pair needs a product and a reciprocal. The pairs are computed in blocks
that stay in a CPU's cache; the backward pass computes `ρ` again.
"""

from typing import Any, Iterator, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from capsule_routing.functions.compiled import compiled_form
from capsule_routing.functions.precision import in_float32, without_autocast
from capsule_routing.functions.routing import RoutingResult, dynamic_routing
from capsule_routing.functions.types import Mask

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input

# Elements of a block of pairs. On a CPU: eight megabytes in float32, the best of the measured sizes. On a GPU: 256, so
# that starting the kernels takes less time than running them.
BLOCK = {"cpu": 2**21, "cuda": 2**26}


def squared_exponential(part: Tensor) -> Tensor:
    """`exp 2a`, without a gradient, in at least float32.

    `a` is clipped at ±43 in float32 and ±350 in float64. The result is finite and not 0, so no product is `0 · ∞`.
    """
    part = part.detach().to(torch.promote_types(part.dtype, torch.float32))
    limit = 43 if part.dtype == torch.float32 else 350
    return part.clamp(-limit, limit).mul_(2).exp_()


@in_float32
def additive_scores(
    left: Tensor, right: Optional[Tensor], vectors: Tensor, right_exponential: Optional[Tensor] = None
) -> Tensor:
    """`Σ_D vectors · tanh(left + right)` for every pair of a left and a right position of a sentence.

    If a part is beyond the range of `squared_exponential` and the other part is near its opposite, the score is
    computed at the limit of the range.

    Args:
        left: `[B, T, J, D]`, or `[B, T, 1, D]` if it is the same for all `J`.
        right: `[B, I, J, D]`; may be None if `right_exponential` is given and no gradient of it is needed. If both are
            None, a ValueError is raised.
        vectors: `[K, D]`.
        right_exponential: `squared_exponential(right)`, if it is already computed.

    Returns:
        Scores `[B, T, I, J, K]`.
    """
    if right_exponential is None:
        if right is None:
            raise ValueError("additive_scores needs right parts or their exponentials")
        right_exponential = squared_exponential(right)
    return _AdditiveScores.apply(left, right, vectors, right_exponential)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Optional[Tensor], vectors: Tensor, right_exponential: Tensor) -> Tensor:
        left_exponential = squared_exponential(left)
        ctx.save_for_backward(left_exponential, right_exponential, vectors)
        scores = left.new_empty(*left.shape[:2], len(vectors), right_exponential.shape[1:3].numel())
        for rows, steps, ratios in _blocks(left_exponential, right_exponential):
            by_step = _by_step(ratios).transpose(1, 2)
            torch.bmm(vectors.expand(len(by_step), -1, -1), by_step, out=scores[rows, steps].flatten(0, 1))
        scores.mul_(-2).add_(vectors.sum(-1, keepdim=True))
        return scores.unflatten(-1, right_exponential.shape[1:3]).movedim(2, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        left_exponential, right_exponential, vectors = ctx.saved_tensors
        left_gradient = torch.empty_like(left_exponential)
        right_gradient = torch.zeros_like(right_exponential)
        sums = torch.zeros_like(vectors)
        one_vector = len(vectors) == 1
        left_is_shared = left_exponential.size(2) < right_exponential.size(2)  # by all J
        with without_autocast(gradient.device.type):
            for rows, steps, ratios in _blocks(left_exponential, right_exponential):
                of_pairs = gradient[rows, steps]
                sums += torch.bmm(_by_step(of_pairs).transpose(1, 2), _by_step(ratios)).sum(0)
                # The sigmoid's derivative is the ratio's, `ρ (1 - ρ)`.
                slopes = sigmoid_backward(of_pairs if one_vector else of_pairs @ vectors, ratios, grad_input=ratios)
                left_gradient[rows, steps] = slopes.sum((2, 3)).unsqueeze(2) if left_is_shared else slopes.sum(2)
                right_gradient[rows] += slopes.sum(1)
        vectors_gradient = gradient.flatten(0, -2).sum(0).unsqueeze(-1) - 2 * sums
        # A factor that all pairs share is applied to the sums.
        scale = 4 * vectors[0] if one_vector else 4
        gradients = (left_gradient.mul_(scale), right_gradient.mul_(scale), vectors_gradient, None)
        # torch refuses a gradient for an input that is None.
        return tuple(gradient if needed else None for gradient, needed in zip(gradients, ctx.needs_input_grad))


def _by_step(block: Tensor) -> Tensor:
    """View `[b, t, I, J, K]` as `[b·t, I·J, K]`: one product per step. A single product would run on one thread."""
    return block.flatten(0, 1).flatten(1, 2)


def _blocks(left: Tensor, right: Tensor) -> Iterator[Tuple[slice, slice, Tensor]]:
    """Yield the sentences, the left positions and `ρ` `[b, t, I, J, D]` of each block.

    A block's memory is reused by the next block. `left` `[B, T, ...]` and `right` `[B, I, ...]` are the exponentials of
    both parts.
    """
    sentences, length = left.shape[:2]
    # Left positions in a block: those of several sentences, or some of one sentence.
    positions = max(1, BLOCK.get(left.device.type, BLOCK["cuda"]) // max(1, right.shape[1:].numel()))
    many_sentences, many_steps = max(1, positions // max(1, length)), max(1, min(positions, length))
    one = left.new_ones(())
    # One allocation for all blocks: allocating each block costs more than filling it.
    memory = left.new_empty(min(many_sentences, sentences), many_steps, *right.shape[1:])
    for first_row in range(0, sentences, many_sentences):
        rows = slice(first_row, first_row + many_sentences)
        for first_step in range(0, length, many_steps):
            steps = slice(first_step, first_step + many_steps)
            part = left[rows, steps]
            ratios = memory[: part.size(0), : part.size(1)]
            torch.addcmul(one, part.unsqueeze(2), right[rows].unsqueeze(1), out=ratios).reciprocal_()
            yield rows, steps, ratios


class _CompiledScores(torch.autograd.Function):
    """`Σ_D vector · tanh(left + right)`, compiled: `[B, T, I, J]` of `[B, T, J, D]`, `[B, I, J, D]` and `[D]`.

    The scores and each gradient are one kernel, which keeps nothing of the pairs' size.
    """

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(left, right, vector)
        return compiled_form(_plain_scores)(left, right, vector)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, ...]:
        left, right, vector = ctx.saved_tensors
        inputs = gradient.contiguous(), left, right
        left_gradient = compiled_form(_left_gradient)(*inputs) * vector
        return left_gradient, compiled_form(_right_gradient)(*inputs) * vector, compiled_form(_vector_gradient)(*inputs)


def _tanh(left: Tensor, right: Tensor) -> Tensor:
    return (left.unsqueeze(2) + right.unsqueeze(1)).tanh()


def _plain_scores(left: Tensor, right: Tensor, vector: Tensor) -> Tensor:
    return (_tanh(left, right) * vector).sum(-1)


def _slopes(gradient: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return gradient.unsqueeze(-1) * (1 - _tanh(left, right).square())


def _left_gradient(gradient: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return _slopes(gradient, left, right).sum(2)


def _right_gradient(gradient: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return _slopes(gradient, left, right).sum(1)


def _vector_gradient(gradient: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return (gradient.unsqueeze(-1) * _tanh(left, right)).sum((2, 3)).sum((0, 1))


@in_float32
def guided_routing(
    votes: Tensor,
    keys: Optional[Tensor],
    first_part: Tensor,
    state_part: Tensor,
    capsule_weight: Tensor,
    vector: Tensor,
    iterations: int,
    *,
    padding_mask: Mask = None,
    exponentials: Optional[Tensor] = None,
    compiled: bool = False,
) -> RoutingResult:
    """Route source words to capsules, separately for each target step.

    The agreement is Eq. 7, `b_tij += wᵀ tanh(W_b [z_t; v_ij; Ω_tj])`. `W_b` has three blocks, for the states, the votes
    and the capsules. The caller computes the products of the first two blocks once. The product with the capsules is
    computed in each iteration. The capsules of the first iteration are the same at all steps, so the caller also
    computes their product once.

    Args:
        votes: `v` `[B, I, J, D]`, 0 at padding.
        keys: `[B, I, J, D]`, the second block of `W_b` times the votes.
        first_part: `[B, J, D]`, the third block of `W_b` times the capsules of the first iteration.
        state_part: `[B, T, D]`, the first block of `W_b` times the states.
        capsule_weight: `[D, D]`, the third block of `W_b`.
        vector: `w` `[D]`.
        iterations: how often coupling and capsules are computed. Fewer than 2 raise a ValueError: with one there is no
            agreement.
        padding_mask: `[B, I]`, True marks padding.
        exponentials: `squared_exponential(keys)`, if it is already computed. `keys` may then be None if no gradient of
            them is needed.
        compiled: whether `torch.compile` compiles the scores, which needs `keys`.

    Returns:
        `RoutingResult(capsules [B, T, J, D], coupling [B, T, I, J])`.
    """
    if iterations < 2:
        raise ValueError(f"iterations must be at least 2, not {iterations}")
    states, vectors = state_part.unsqueeze(2), vector.unsqueeze(0)

    def scores(capsule_part: Tensor) -> Tensor:
        if compiled:
            return _CompiledScores.apply(states + capsule_part, keys, vector)
        return additive_scores(states + capsule_part, keys, vectors, exponentials).squeeze(-1)

    def agreement(_: Tensor, capsules: Tensor) -> Tensor:
        return scores(capsules @ capsule_weight.t())

    # The coupling of a word does not depend on other words. So padding, which has votes of 0, is masked at the end.
    first = scores(first_part.unsqueeze(1))
    votes = votes.unsqueeze(1)
    capsules, coupling = dynamic_routing(votes, iterations - 1, agreement=agreement, initial_logits=first)
    if padding_mask is not None:
        coupling = coupling.masked_fill(padding_mask[:, None, :, None], 0)
    return RoutingResult(capsules, coupling)
