"""Positional routing (Duan et al. 2020, Alg. 3) under a causal mask, in blocks of positions.

Entry `(t, k)` of a head's votes `V` is `q_t · k_k` for `k ≤ t` and 0 for `k > t`. The mask removes the low rank of `V`,
but a sum of votes and an agreement with a capsule are still sums over a suffix and over a prefix of the positions:

    S[k] = Σ_t r_t V[t, k] = k_k · Σ_{t≥k} r_t q_t          A[t] = Σ_k V[t, k] u_k = q_t · Σ_{k≤t} u_k k_k

Positions are cut into blocks. Whole blocks need only products with vectors of size `d`. The rest lies within the block
of the position itself. The triangle of `V` in this block is explicit. docs/capsule-transformer.md has the derivation.

Shapes: `n` blocks of `b` positions, `c` routings at a time. Couplings, sums, capsules and agreements are
`[B, H, n, c, b]`. Row `c` is a routing, and `n` and `b` together are its positions.
"""

from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from capsule_routing.functions.precision import without_autocast
from capsule_routing.functions.squash import curvatures, norm_parts, squash_gradient

# Positions in a block, also in the cache of a long prefix in decoding (recurrent.py). CPU time on one core, 8 heads of
# 64: with 32 or 128 a training step is slower at 1,024 words (727 and 628 ms instead of 582 ms). With 128 or more a
# decoding step is slower from 161 words on.
BLOCK = 64
# Routings computed together in training, for the positions up to the last of them. Measured together with BLOCK.
ROWS = 128
# The dimensions of a capsule's components: blocks, and positions in a block.
ALL = (2, 4)


class CausalVotes:
    """The votes of `n` blocks of positions. A position with a query and key of 0 is excluded.

    Args:
        queries: `[B, H, n, b, d]`. Not read for a single block.
        keys: `[B, H, n, b, d]`, likewise.
        triangles: `[B, H, n, b, b]`, the votes within each block, 0 above the diagonal.
        scale: a vote is `scale` times the product of query and key.
    """

    def __init__(self, queries: Tensor, keys: Tensor, triangles: Tensor, scale: float = 1.0):
        self.queries, self.keys, self.triangles = queries, keys, triangles
        self.many = queries.size(2) > 1
        if self.many:
            # `[n, n]`: `scale` where the column's block is before the row's block, otherwise 0. All votes outside the
            # triangles use it. A product with it is one pass over the blocks. An exclusive cumsum takes three to five.
            self.earlier = queries.new_full((queries.size(2), queries.size(2)), scale).tril_(-1)

    def after(self, couplings: Tensor) -> Optional[Tensor]:
        """Compute `Σ r_t q_t` over all blocks after each block, scaled, `[B, H, n, c, d]`; None for a single block."""
        return _cumulate(couplings @ self.queries, self.earlier.mT) if self.many else None

    def before(self, capsules: Tensor) -> Optional[Tensor]:
        """Compute `Σ u_k k_k` over all blocks before each block, scaled, `[B, H, n, c, d]`; None for a single block."""
        return _cumulate(capsules @ self.keys, self.earlier) if self.many else None

    def totals(self) -> Tensor:
        """Compute the sums of the votes with couplings of 1, `[B, H, n, 1, b]`."""
        after = _cumulate(self.queries.sum(3, keepdim=True), self.earlier.mT) if self.many else None
        return _add_product(self.triangles.sum(3, keepdim=True), after, self.keys)

    def sums(self, couplings: Tensor, after: Optional[Tensor]) -> Tensor:
        """Compute the sums `S` of the votes. `after` is `self.after(couplings)`."""
        return _add_product(couplings @ self.triangles, after, self.keys)

    def agreements(self, capsules: Tensor, before: Optional[Tensor]) -> Tensor:
        """Compute the agreements `A` of the votes with capsules. `before` is `self.before(capsules)`."""
        return _add_product(capsules @ self.triangles.mT, before, self.queries)


def _cumulate(rows: Tensor, which: Tensor) -> Tensor:
    return (which @ rows.flatten(3)).view_as(rows)


def _add_product(total: Tensor, left: Optional[Tensor], right: Tensor) -> Tensor:
    """Add `left @ rightᵀ` to `total` in place, unless `left` is None. Return `total`."""
    if left is not None:
        total.flatten(0, 2).baddbmm_(left.flatten(0, 2), right.flatten(0, 2).mT)
    return total


def causal_routing(queries: Tensor, keys: Tensor, iterations: int, *, block: int = BLOCK, rows: int = ROWS) -> Tensor:
    """Route the votes up to each position to the heads, all positions at once.

    Queries and keys are `[B, H, L, d]`; rows of 0 are excluded. `block` positions form a block, and `rows` routings are
    computed together. Returns the squashed capsules, `[B, H, L, L]`.
    """
    length = queries.size(2)
    missing = -length % block
    if missing:
        queries, keys = (pad(part, (0, 0, 0, missing)) for part in (queries, keys))
    # The first couplings are uniform: S[l, k] = k_k · (C_l - C_{k-1}) / H, where C is the cumulative sum of queries.
    totals = queries.cumsum(2) / queries.size(1)
    offsets = ((totals - queries / queries.size(1)) * keys).sum(-1)
    queries, keys, offsets = (part.unflatten(2, (-1, block)) for part in (queries, keys, offsets))
    triangles = (queries @ keys.mT).tril()
    return _CausalRouting.apply(queries, keys, triangles, totals, offsets, length, iterations, rows)


class _Rows(NamedTuple):
    """The routings of positions `start … stop - 1`, which use the first `blocks` blocks.

    Attributes:
        mask: `[n, c, b]`, 1 where position `t ≤ l` belongs to routing `l`.
    """

    start: int
    stop: int
    blocks: int
    mask: Tensor

    @classmethod
    def all(cls, length: int, chunk: int, queries: Tensor) -> Iterator["_Rows"]:
        block = queries.size(3)
        for start in range(0, length, chunk):
            stop = min(start + chunk, length)
            blocks = -(-stop // block)
            mask = queries.new_ones(stop - start, blocks * block).tril_(start)
            yield cls(start, stop, blocks, mask.unflatten(1, (-1, block)).transpose(0, 1).contiguous())

    def of(self, whole: Tensor) -> Tensor:
        """Return a view of the rows of these routings in `[B, H, L, ...]`."""
        return whole[:, :, self.start : self.stop]


class _CausalRouting(torch.autograd.Function):
    """The gradient is implemented here for the same reasons as in `parallel.py`."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        triangles: Tensor,
        totals: Tensor,
        offsets: Tensor,
        length: int,
        iterations: int,
        chunk: int,
    ) -> Tensor:
        result = queries.new_zeros(*queries.shape[:2], length, length)
        votes = (queries, keys, triangles)
        kept: List[Optional[Tensor]] = []
        for rows in _Rows.all(length, chunk, queries):
            q, k, inner = (whole[:, :, : rows.blocks].contiguous() for whole in votes)
            part = CausalVotes(q, k, inner)
            sums = rows.of(totals).unsqueeze(2) @ part.keys.mT
            sums = sums.sub_(offsets[:, :, : rows.blocks].unsqueeze(3)).mul_(rows.mask)
            inverse, divisor = _norm_parts(sums)
            kept += [sums, inverse, divisor]
            weights = None
            for _ in range(iterations - 1):
                capsules = sums / divisor
                before = part.before(capsules)
                agreements = part.agreements(capsules, before)
                weights = agreements if weights is None else weights.add_(agreements)
                couplings = weights.softmax(dim=1).mul_(rows.mask)
                after = part.after(couplings)
                sums = part.sums(couplings, after)
                inverse, divisor = _norm_parts(sums)
                kept += [before, couplings, after, sums, inverse, divisor]
            capsules = sums / divisor
            columns = min(rows.blocks * queries.size(3), length)
            rows.of(result)[..., :columns] = capsules.transpose(2, 3).flatten(3)[..., :columns]
        ctx.iterations, ctx.chunk = iterations, chunk
        ctx.save_for_backward(queries, keys, triangles, totals, *kept)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        with without_autocast(gradient.device.type):
            return (*_backward(ctx, gradient), None, None, None)


def _backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, ...]:
    queries, keys, triangles, totals, *kept = ctx.saved_tensors
    votes = (queries, keys, triangles)
    votes_gradient = [torch.zeros_like(whole) for whole in votes]
    totals_gradient = torch.zeros_like(totals)
    offsets_gradient = queries.new_zeros(queries.shape[:4])
    size = 3 + 6 * (ctx.iterations - 1)
    for index, rows in enumerate(_Rows.all(gradient.size(2), ctx.chunk, queries)):
        part = CausalVotes(*(whole[:, :, : rows.blocks].contiguous() for whole in votes))
        part_gradient = [whole[:, :, : rows.blocks] for whole in votes_gradient]
        of_rows = kept[index * size : (index + 1) * size]
        squashed = [of_rows[start : start + 3] for start in range(0, size, 6)]
        products = [of_rows[start : start + 3] for start in range(3, size, 6)]
        slopes = curvatures([inverse for _, inverse, _ in squashed])
        columns = rows.blocks * queries.size(3)
        capsules_gradient = rows.of(gradient)[..., :columns]
        capsules_gradient = pad(capsules_gradient, (0, columns - capsules_gradient.size(3)))
        capsules_gradient = capsules_gradient.unflatten(3, (rows.blocks, -1)).transpose(2, 3)
        sums, _, divisor = squashed[-1]
        capsules = sums / divisor
        weights_gradient = None
        for i in reversed(range(1, ctx.iterations)):
            before, couplings, after = products[i - 1]
            sums_gradient = squash_gradient(capsules_gradient, capsules, divisor, slopes[i], dim=ALL)
            before_gradient = part.before(sums_gradient)
            _add_gradient(part_gradient, couplings, after, sums_gradient, before_gradient)
            coupling_gradient = part.agreements(sums_gradient, before_gradient)
            # Couplings are 0 after the row's own position. This also stops the gradient there.
            logits_gradient = torch.ops.aten._softmax_backward_data(coupling_gradient, couplings, 1, queries.dtype)
            # A weight is the sum of all agreements so far, so the gradient of an agreement sums over all later weights.
            weights_gradient = logits_gradient if weights_gradient is None else weights_gradient.add_(logits_gradient)

            sums, _, divisor = squashed[i - 1]
            capsules = sums / divisor
            after_gradient = part.after(weights_gradient)
            capsules_gradient = part.sums(weights_gradient, after_gradient)
            _add_gradient(part_gradient, weights_gradient, after_gradient, capsules, before)
        sums_gradient = squash_gradient(capsules_gradient, capsules, divisor, slopes[0], dim=ALL).mul_(rows.mask)
        rows.of(totals_gradient).add_((sums_gradient @ part.keys).sum(2))
        part_gradient[1].add_(sums_gradient.mT @ rows.of(totals).unsqueeze(2))
        offsets_gradient[:, :, : rows.blocks] -= sums_gradient.sum(3)
    return *votes_gradient, totals_gradient, offsets_gradient


def _add_gradient(
    gradients: Sequence[Tensor], couplings: Tensor, after: Optional[Tensor], capsules: Tensor, before: Optional[Tensor]
) -> None:
    """Add the gradient of `Σ r_t V[t, k] u_k` with respect to `V`.

    Sums and agreements both have this form, where one of the two factors is the gradient of the result.
    """
    queries, keys, triangles = gradients
    triangles.add_(couplings.mT @ capsules)
    if before is not None and after is not None:
        queries.add_(couplings.mT @ before)
        keys.add_(capsules.mT @ after)


def _norm_parts(sums: Tensor) -> Tuple[Tensor, Tensor]:
    return norm_parts(torch.linalg.vector_norm(sums, dim=ALL, keepdim=True))
