"""What a routed self-attention keeps of a hypothesis's prefix during decoding, and how beam search reorders it.

fairseq calls `index_select(0, order)` on everything that an attention caches. A step never changes what an earlier step
kept. Shapes: `B` hypotheses, `H` heads, `L` positions, heads of size `d`.
"""

from typing import List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor
from torch.nn.functional import pad

from capsule_routing.functions.horizontal.chunk import BLOCK
from capsule_routing.functions.horizontal.recurrent import LONGEST_BLOCK, append_to_block, in_own_block, split_block


class RowHistory(NamedTuple):
    """A tensor `[B, ...]` for each step. Its rows are put in order only when they are read.

    Beam search reorders a cache at almost every step, which copies it. This one keeps the order instead. It suits
    tensors that are seldom read. A row of an earlier step is kept even if no present row continues it.
    """

    steps: Tuple[Tensor, ...] = ()
    orders: Tuple[Optional[Tensor], ...] = ()  # how the rows of each step were reordered before the next one, or None

    def append(self, rows: Tensor) -> "RowHistory":
        return RowHistory((*self.steps, rows), (*self.orders, None))

    def index_select(self, dim: int, order: Tensor) -> "RowHistory":
        assert dim == 0 and self.steps
        *earlier, last = self.orders
        # The order is copied, because the caller may write the next one into the same tensor.
        return RowHistory(self.steps, (*earlier, order.clone() if last is None else last[order]))

    def in_order(self) -> List[Tensor]:
        """Return the tensors of all steps with the present rows."""
        tensors, rows = [], None
        for tensor, order in zip(reversed(self.steps), reversed(self.orders)):
            if order is not None:
                rows = order if rows is None else order[rows]
            tensors.append(tensor if rows is None else tensor[rows])
        return tensors[::-1]


class GrowingRows:
    """A tensor `[B, H, L, d]` with places for further positions, so that appending one does not copy the others.

    They are 0 until a continuation uses them. `whole` is the tensor with them, `[B, H, n·BLOCK, d]`; `length` is `L`.
    """

    def __init__(self, rows: Tensor):
        self.length = rows.size(2)
        self.whole = pad(rows, (0, 0, 0, -self.length % BLOCK))
        # The number of places in use, shared by all that have this tensor. A second continuation of the same prefix
        # finds the next place in use, and copies.
        self._used = [self.length]

    @property
    def rows(self) -> Tensor:
        return self.whole[:, :, : self.length]

    def append(self, row: Tensor) -> "GrowingRows":
        """Append a position `[B, H, 1, up to d]`, filled up with zeros."""
        free = self._used[0] == self.length < self.whole.size(2)
        # Inference mode makes tensors that other modes may not write to.
        writable = torch.is_inference_mode_enabled() or not self.whole.is_inference()
        if free and writable and not torch.is_grad_enabled():
            longer = self._with(self.whole, self.length + 1, self._used)
        else:
            longer = GrowingRows(pad(self.rows, (0, 0, 0, 1)))
        longer.whole[:, :, self.length, : row.size(3)] = row[:, :, 0]
        # A backward pass may read this tensor later. Then all its places count as used, and nothing is written to it.
        longer._used[0] = longer.whole.size(2) if torch.is_grad_enabled() else longer.length
        return longer

    def index_select(self, dim: int, order: Tensor) -> "GrowingRows":
        whole = self.whole.index_select(dim, order)
        if self._used[0] > self.length:  # another continuation has written to the further places
            whole[:, :, self.length :] = 0
        return self._with(whole, self.length, [self.length])

    @classmethod
    def _with(cls, whole: Tensor, length: int, used: List[int]) -> "GrowingRows":
        made = cls.__new__(cls)
        made.whole, made.length, made._used = whole, length, used
        return made


class Extended(NamedTuple):
    """A prefix with a new position, the arguments of `route_last_token` for it, and the values `[B, H, L, d]`."""

    prefix: "Prefix"
    row: Tensor
    queries: Optional[Tensor]
    keys: Optional[Tensor]
    logits: Tensor
    values: Tensor


class ShortPrefix(NamedTuple):
    """A prefix that is one block of the routing. The routing reads only logits."""

    positions: Tensor  # keys and values in turn, `[B, H, 2L, d]`, so that one kernel appends or reorders both
    logits: Tensor  # of all positions, `[B, H, L, b]` with `b ≥ L`
    queries: RowHistory  # read if the prefix becomes longer than one block

    @property
    def length(self) -> int:
        return self.logits.size(2)

    def index_select(self, dim: int, order: Tensor) -> "ShortPrefix":
        positions, logits = (part.index_select(dim, order) for part in (self.positions, self.logits))
        return ShortPrefix(positions, logits, self.queries.index_select(dim, order))


class LongPrefix(NamedTuple):
    """A prefix of several blocks of `BLOCK` positions. Queries, keys and values are `[B, H, L, d]`."""

    queries: GrowingRows
    keys: GrowingRows
    values: GrowingRows
    logits: GrowingRows  # of each position within its own block, `[B, H, L, BLOCK]`

    @property
    def length(self) -> int:
        return self.queries.length

    def index_select(self, dim: int, order: Tensor) -> "LongPrefix":
        return LongPrefix(*(part.index_select(dim, order) for part in self))


Prefix = Union[ShortPrefix, LongPrefix]


def extend(prefix: Optional[Prefix], q: Tensor, k: Tensor, v: Tensor, scale: float) -> Extended:
    """Append a position, with query, key and value `[B, H, 1, d]`, to a prefix, which is None before the first one.

    Logits are `scale` times the products of queries and keys.
    """
    if isinstance(prefix, ShortPrefix) and prefix.length == LONGEST_BLOCK:
        whole = torch.cat(prefix.queries.in_order(), dim=2), prefix.positions[:, :, ::2], prefix.positions[:, :, 1::2]
        prefix = LongPrefix(*map(GrowingRows, (*whole, split_block(prefix.logits, BLOCK))))
    if isinstance(prefix, LongPrefix):
        queries, keys, values = (rows.append(row) for rows, row in zip(prefix, (q, k, v)))
        row = _scaled_product(q, keys.rows, scale)
        logits = prefix.logits.append(in_own_block(row, BLOCK))
        longer = LongPrefix(queries, keys, values, logits)
        return Extended(longer, row, queries.whole, keys.whole, logits.whole, values.rows)
    positions = torch.cat([k, v] if prefix is None else [prefix.positions, k, v], dim=2)
    row = _scaled_product(q, positions[:, :, ::2], scale)
    block = append_to_block(None if prefix is None else prefix.logits, row)
    history = (RowHistory() if prefix is None else prefix.queries).append(q)
    return Extended(ShortPrefix(positions, block, history), row, None, None, block, positions[:, :, 1::2])


def _scaled_product(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """Return `scale · q kᵀ` in one kernel. With `beta=0`, `baddbmm` ignores its first argument."""
    queries, keys = q.flatten(0, 1), k.flatten(0, 1)
    product = torch.baddbmm(queries[:, :, :1], queries, keys.transpose(1, 2), beta=0, alpha=scale)
    return product.unflatten(0, q.shape[:2])
