"""fairseq's self-attention with routed logits."""

from typing import Dict, NamedTuple, Optional, Tuple

import torch
from fairseq import utils
from fairseq.modules import MultiheadAttention
from torch import Tensor

from fairseq_capsule.models.beams import IncrementalState
from fairseq_capsule.modules import AttentionRouting
from fairseq_capsule.routing import append_block_logits, block_size, missing_positions

# Up to this number of positions, decoding stores query, key and value of a position side by side, so that one kernel
# appends all three. For longer prefixes the strided rows cost more. CPU time of a layer on one core, 5 hypotheses,
# 8 heads of 64, at 20 / 64 / 128 / 320 words: side by side 0.45 / 0.79 / 2.6 / 9.6 ms, separate
# 0.42 / 0.73 / 2.9 / 5.7 ms.
TOGETHER = 32
POSITIONS = ("prev_query", "prev_key", "prev_value")


class Explanation(NamedTuple):
    """The attention of one layer and the capsules that changed it. Each tensor is `[B, H, L, L]`; rows are queries.

    Attributes:
        before: the attention without routing, `softmax(mask(E))`.
        after: the attention, `softmax(mask(E + Ω↑ + Ω↔))`.
        vertical: `Ω↑`, or None if the layer has none.
        horizontal: `Ω↔`, or None if the layer has none.
    """

    before: Tensor
    after: Tensor
    vertical: Optional[Tensor]
    horizontal: Optional[Tensor]


class RoutingSelfAttention(MultiheadAttention):
    """Self-attention `softmax(mask(E + Ω↑ + Ω↔)) V` (Duan et al. 2020, §3.2), with parameters named as in fairseq.

    Args:
        embed_dim, num_heads, dropout, q_noise, qn_block_size: as in fairseq.
        routing: the module that routes the logits.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        routing: AttentionRouting,
        dropout: float = 0.0,
        q_noise: float = 0.0,
        qn_block_size: int = 8,
    ):
        super().__init__(
            embed_dim, num_heads, dropout=dropout, self_attention=True, q_noise=q_noise, qn_block_size=qn_block_size
        )
        self.dropout_module.module_name = "MultiheadAttention"  # the name that --retain-dropout-modules knows
        self.routing = routing

    def forward(
        self,
        query: Tensor,
        key: Optional[Tensor] = None,
        value: Optional[Tensor] = None,
        key_padding_mask: Optional[Tensor] = None,
        incremental_state: Optional[IncrementalState] = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Optional[Tensor] = None,
        need_head_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Compute self-attention. The arguments are those of fairseq; `key` and `value` are ignored.

        Args:
            query: `[L, B, C]`; with `incremental_state` only the last position.
            key_padding_mask: `[B, L]`, True marks padding.
            attn_mask: `[L, L]`, added to the logits; minus infinity where a query must not attend.

        Returns:
            The output `[L, B, C]`, and the attention `[B, L, L]` (`[H, B, L, L]` with `need_head_weights`) or None.
        """
        q, k, v = self._project(query)
        if incremental_state is None:
            q, k = _zero_padding(key_padding_mask, q * self.scaling, k)
            logits = self.routing(q @ k.transpose(2, 3), key_padding_mask, factors=(q, k))
        else:
            logits, v, key_padding_mask = self._extend(incremental_state, q, k, v, key_padding_mask)
        weights = _attend(logits, key_padding_mask, attn_mask)
        output = self.dropout_module(weights.type_as(v)) @ v
        output = self.out_proj(output.permute(2, 0, 1, 3).reshape_as(query))
        if not (need_weights or need_head_weights):
            return output, None
        return output, weights.transpose(0, 1) if need_head_weights else weights.mean(1)

    @torch.no_grad()
    def explain(
        self, query: Tensor, key_padding_mask: Optional[Tensor] = None, attn_mask: Optional[Tensor] = None
    ) -> Explanation:
        """Recompute the attention and capsules that `forward` does not return. Arguments as in `forward`."""
        q, k, _ = self._project(query)
        q, k = _zero_padding(key_padding_mask, q * self.scaling, k)
        logits = q @ k.transpose(2, 3)
        vertical, horizontal = self.routing.capsules(logits, key_padding_mask, factors=(q, k))
        routed = sum((part for part in (vertical, horizontal) if part is not None), logits)
        before, after = (_attend(part, key_padding_mask, attn_mask) for part in (logits, routed))
        return Explanation(before, after, vertical, horizontal)

    def logits(self, query: Tensor, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """Return the unrouted logits `E` `[B, H, L, L]`, 0 at padded queries and keys. Arguments as in `forward`."""
        q, k, _ = self._project(query)
        q, k = _zero_padding(key_padding_mask, q, k)
        return q @ k.transpose(2, 3)

    def _project(self, query: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """Return queries (not scaled yet), keys and values, each `[B, H, L, d]`."""

        def heads(projected: Tensor) -> Tensor:
            return projected.view(*query.shape[:2], self.num_heads, self.head_dim).permute(1, 2, 0, 3)

        projections = (self.q_proj, self.k_proj, self.v_proj)
        if not (torch.is_grad_enabled() and all(_is_plain(projection) for projection in projections)):
            q, k, v = (projection(query) for projection in projections)
            return heads(q), heads(k), heads(v)
        # One product instead of three, and two instead of six in the backward pass. Without gradients this does not
        # pay for copying the weights.
        weight, bias = (
            torch.cat(parts) for parts in zip(*((projection.weight, projection.bias) for projection in projections))
        )
        packed = torch.nn.functional.linear(query, weight, bias)
        packed = packed.view(*query.shape[:2], 3, self.num_heads, self.head_dim)
        q, k, v = packed.permute(2, 1, 3, 0, 4)
        return q, k, v

    def _extend(
        self, incremental_state: IncrementalState, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Optional[Tensor]
    ) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
        """Append the new position to the cache of earlier positions.

        The cache holds queries, keys, values, and for each position the logits within its block. The routing of the
        last position needs no other logits (`routing/last_token.py`). The cache grows linearly with the prefix.

        Returns:
            The routed logits of the new position `[B, H, 1, L]`, and the values and the padding mask of all positions.
        """
        saved = self._get_input_buffer(incremental_state)
        kept_logits = saved.get("prev_logits")
        length = 1 if kept_logits is None else kept_logits.size(2) + 1
        mask = self._append_prev_key_padding_mask(
            key_padding_mask,
            saved.get("prev_key_padding_mask"),
            batch_size=q.size(0),
            src_len=length,
            static_kv=False,
        )
        padding_mask = None if mask is None else mask.bool()
        q, k = _zero_padding(None if padding_mask is None else padding_mask[:, -1:], q, k)
        block = block_size(length)
        missing = missing_positions(length, block)
        kept, (queries, keys, v) = _append(saved, (q, k, v), missing)
        row = _scaled_product(q, keys[:, :, :length], self.scaling)
        logits = append_block_logits(kept_logits, row, block, missing)
        kept["prev_logits"] = logits[:, :, :length]
        self._set_input_buffer(incremental_state, {**kept, "prev_key_padding_mask": mask})
        return self.routing.forward_last(row, queries, keys, logits, self.scaling), v, padding_mask


def _append(
    saved: Dict[str, Optional[Tensor]], new: Tuple[Tensor, ...], missing: int
) -> Tuple[Dict[str, Tensor], Tuple[Tensor, ...]]:
    """Append the query, key and value of a position, each `[B, H, 1, d]`.

    Queries and keys are then padded with zeros at `missing` further positions.

    Returns:
        The new cache, and the queries, keys and values of all positions.
    """
    together = saved.get("prev_positions")  # [B, H, 3L, d]: query, key and value of each position side by side
    if together is None:
        before = [part for part in map(saved.get, POSITIONS) if part is not None]
    else:
        before = [together[:, :, part::3] for part in range(3)]
    length = 1 + (before[0].size(2) if before else 0)
    if length <= TOGETHER:
        positions = torch.cat([*([] if together is None else [together]), *new], dim=2)
        return {"prev_positions": positions}, tuple(positions[:, :, part::3] for part in range(3))
    zeros = [new[0].new_zeros(*new[0].shape[:2], missing, new[0].size(3))] if missing else []
    queries, keys = (torch.cat([*rows, *zeros], dim=2) for rows in zip(before[:2], new[:2]))
    parts = queries, keys, torch.cat([before[2], new[2]], dim=2)
    return {name: part[:, :, :length] for name, part in zip(POSITIONS, parts)}, parts


def _is_plain(projection: torch.nn.Module) -> bool:
    """Return whether a projection is a plain linear layer, without quantisation or hooks."""
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    return type(projection) is torch.nn.Linear and not any(getattr(projection, each) for each in hooks)


def _scaled_product(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """Return `scale · q kᵀ` in one kernel. With `beta=0`, `baddbmm` ignores its first argument."""
    queries, keys = q.flatten(0, 1), k.flatten(0, 1)
    product = torch.baddbmm(queries[:, :, :1], queries, keys.transpose(1, 2), beta=0, alpha=scale)
    return product.unflatten(0, q.shape[:2])


def _zero_padding(padding_mask: Optional[Tensor], *rows: Tensor) -> Tuple[Tensor, ...]:
    """Set queries and keys of padding to 0. Their logits are then 0 and do not affect the routing."""
    if padding_mask is None:
        return rows
    mask = padding_mask[:, None, :, None]
    return tuple(row.masked_fill(mask, 0) for row in rows)


def _attend(logits: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor]) -> Tensor:
    # Masks are added instead of filled in. The softmax then stops the gradient, so no pass masks the gradient.
    if attn_mask is not None:
        logits = logits + attn_mask
    if key_padding_mask is not None:
        padding = logits.new_zeros(key_padding_mask.shape).masked_fill_(key_padding_mask, float("-inf"))
        logits = logits + padding[:, None, None, :]
    return utils.softmax(logits, dim=-1)
