"""fairseq's self-attention with routed logits."""

from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
from fairseq import utils
from fairseq.modules import MultiheadAttention
from torch import Tensor

from fairseq_capsule.models.mechanism import IncrementalState
from fairseq_capsule.models.prefix import extend
from fairseq_capsule.modules import AttentionRouting


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
            query: `[L, B, C]`; with `incremental_state` only the last position, `[1, B, C]`.
            key_padding_mask: `[B, L]`, True marks padding; with `incremental_state` only the last position, `[B, 1]`.
            attn_mask: `[L, L]`, added to the logits; minus infinity where a query must not attend.

        Returns:
            The output `[L, B, C]`, and the attention `[B, L, L]` (`[H, B, L, L]` with `need_head_weights`) or None.
            With `incremental_state` they have one query: `[1, B, C]`, and `[B, 1, L]` (`[H, B, 1, L]`).
        """
        if incremental_state is None:
            q, k, v = self._factors(query, key_padding_mask)
            logits = self.routing(q @ k.transpose(2, 3), key_padding_mask, factors=(q, k))
        else:
            logits, v, key_padding_mask = self._extend(incremental_state, *self._project(query), key_padding_mask)
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
        q, k, _ = self._factors(query, key_padding_mask)
        logits = q @ k.transpose(2, 3)
        vertical, horizontal = self.routing.capsules(logits, key_padding_mask, factors=(q, k))
        routed = sum((part for part in (vertical, horizontal) if part is not None), logits)
        before, after = (_attend(part, key_padding_mask, attn_mask) for part in (logits, routed))
        return Explanation(before, after, vertical, horizontal)

    def logits(self, query: Tensor, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """Return the unrouted logits `E` `[B, H, L, L]`, 0 at padded queries and keys. Arguments as in `forward`."""
        q, k, _ = self._factors(query, key_padding_mask)
        return q @ k.transpose(2, 3)

    def _factors(self, query: Tensor, key_padding_mask: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
        """Return scaled queries and keys, 0 at padding, whose products are `E`, and values, each `[B, H, L, d]`."""
        q, k, v = self._project(query)
        q, k = _zero_padding(key_padding_mask, q * self.scaling, k)
        return q, k, v

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
        """Append the new position to the prefix.

        Returns:
            The routed logits of the new position `[B, H, 1, L]`, and the values and the padding mask of all positions.
        """
        saved: Dict[str, Any] = self._get_input_buffer(incremental_state)
        prefix = saved.get("prefix")
        mask = self._append_prev_key_padding_mask(
            key_padding_mask,
            saved.get("prev_key_padding_mask"),
            batch_size=q.size(0),
            src_len=1 if prefix is None else prefix.length + 1,
            static_kv=False,
        )
        padding_mask = None if mask is None else mask.bool()
        q, k = _zero_padding(None if padding_mask is None else padding_mask[:, -1:], q, k)
        longer, row, queries, keys, logits, values = extend(prefix, q, k, v, self.scaling)
        buffer: Dict[str, Any] = {"prefix": longer, "prev_key_padding_mask": mask}
        self._set_input_buffer(incremental_state, buffer)
        return self.routing.forward_last(row, queries, keys, logits, self.scaling), values, padding_mask


def _is_plain(projection: torch.nn.Module) -> bool:
    """Return whether a projection is a plain linear layer, without quantisation or hooks."""
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    return type(projection) is torch.nn.Linear and not any(getattr(projection, each) for each in hooks)


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
        # Not minus infinity: the query of padding before the first word has only keys of padding, and its softmax would
        # be NaN. Half of the lowest number, so that the sum with a logit is finite in float16.
        lowest = torch.finfo(logits.dtype).min / 2
        padding = logits.new_zeros(key_padding_mask.shape).masked_fill_(key_padding_mask, lowest)
        logits = logits + padding[:, None, None, :]
    return utils.softmax(logits, dim=-1)
