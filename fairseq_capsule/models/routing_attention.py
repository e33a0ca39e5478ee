"""fairseq's self-attention with routed logits."""

from typing import NamedTuple, Optional, Tuple

import torch
from fairseq import utils
from fairseq.modules import MultiheadAttention
from torch import Tensor

from fairseq_capsule.models.beams import IncrementalState
from fairseq_capsule.modules import AttentionRouting
from fairseq_capsule.routing import block_logits, missing_positions


class Explanation(NamedTuple):
    """What one layer attends to, and why; every tensor `[B, H, L, L]`, rows are queries.

    Attributes:
        before: the attention without routing, `softmax(mask(E))`.
        after: the attention, `softmax(mask(E + Ω↑ + Ω↔))`.
        vertical: `Ω↑`, or None where the layer has none.
        horizontal: `Ω↔`, or None where the layer has none.
    """

    before: Tensor
    after: Tensor
    vertical: Optional[Tensor]
    horizontal: Optional[Tensor]


class RoutingSelfAttention(MultiheadAttention):
    """Self-attention `softmax(mask(E + Ω↑ + Ω↔)) V` (Duan et al. 2020, §3.2); parameters are named as in fairseq.

    Args:
        embed_dim, num_heads, dropout, q_noise, qn_block_size: as in fairseq.
        routing: what routes the logits.
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
        """As fairseq's `forward`, whose `key` and `value` are `query` here.

        Args:
            query: `[L, B, C]`; the last position alone with `incremental_state`.
            key_padding_mask: `[B, L]`, True marks padding.
            attn_mask: `[L, L]`, added to the logits; minus infinity where a query may not look.

        Returns:
            The output `[L, B, C]`, and the attention `[B, L, L]` (`[H, B, L, L]` with `need_head_weights`) or None.
        """
        q, k, v = self._project(query)
        if incremental_state is None:
            q, k = _zero_padding(key_padding_mask, q, k)
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
        """Recompute what `forward` keeps to itself; arguments as there."""
        q, k, _ = self._project(query)
        q, k = _zero_padding(key_padding_mask, q, k)
        logits = q @ k.transpose(2, 3)
        vertical, horizontal = self.routing.capsules(logits, key_padding_mask, factors=(q, k))
        routed = sum((part for part in (vertical, horizontal) if part is not None), logits)
        before, after = (_attend(part, key_padding_mask, attn_mask) for part in (logits, routed))
        return Explanation(before, after, vertical, horizontal)

    def logits(self, query: Tensor, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """`E` `[B, H, L, L]` before any routing, 0 at padded queries and keys; arguments as in `forward`."""
        q, k, _ = self._project(query)
        q, k = _zero_padding(key_padding_mask, q, k)
        return q @ k.transpose(2, 3)

    def _project(self, query: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """Scaled queries, keys and values `[B, H, L, d]`."""

        def heads(projected: Tensor) -> Tensor:
            return projected.view(*query.shape[:2], self.num_heads, self.head_dim).permute(1, 2, 0, 3)

        return heads(self.q_proj(query) * self.scaling), heads(self.k_proj(query)), heads(self.v_proj(query))

    def _extend(
        self, incremental_state: IncrementalState, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Optional[Tensor]
    ) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
        """Append the new position to what is kept of the earlier ones.

        Queries are kept beside keys and values, and of every position the logits within its block: the routing of the
        last position requires no others (routing/last_token.py). All of it grows linearly with the prefix.

        Returns:
            The new position's routed logits `[B, H, 1, L]`, the values and the padding mask of all positions.
        """
        saved = self._get_input_buffer(incremental_state)
        v = _append(saved.get("prev_value"), v)
        length = v.size(2)
        mask = self._append_prev_key_padding_mask(
            key_padding_mask,
            saved.get("prev_key_padding_mask"),
            batch_size=v.size(0),
            src_len=length,
            static_kv=False,
        )
        padding_mask = None if mask is None else mask.bool()
        q, k = _zero_padding(None if padding_mask is None else padding_mask[:, -1:], q, k)
        missing = missing_positions(length)
        queries = _append(saved.get("prev_query"), q, missing)
        keys = _append(saved.get("prev_key"), k, missing)
        row = q @ keys[:, :, :length].transpose(2, 3)
        logits = _append(saved.get("prev_logits"), block_logits(row), missing)
        state = {"prev_query": queries, "prev_key": keys, "prev_value": v, "prev_logits": logits}
        state = {name: rows[:, :, :length] for name, rows in state.items()}
        self._set_input_buffer(incremental_state, {**state, "prev_key_padding_mask": mask})
        return self.routing.forward_last(queries, keys, logits, row), v, padding_mask


def _append(saved: Optional[Tensor], new: Tensor, missing: int = 0) -> Tensor:
    """`new` after `saved` along dimension 2, then `missing` positions of 0."""
    rows = [new] if saved is None else [saved, new]
    if missing:
        rows.append(new.new_zeros(*new.shape[:2], missing, new.size(3)))
    return torch.cat(rows, dim=2) if len(rows) > 1 else new


def _zero_padding(padding_mask: Optional[Tensor], *rows: Tensor) -> Tuple[Tensor, ...]:
    """Queries and keys of padding set to 0: then so are their logits, and they add nothing to any routing."""
    if padding_mask is None:
        return rows
    mask = padding_mask[:, None, :, None]
    return tuple(row.masked_fill(mask, 0) for row in rows)


def _attend(logits: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor]) -> Tensor:
    # Masks are added rather than filled in: the softmax then stops the gradient, without a pass to mask it too.
    if attn_mask is not None:
        logits = logits + attn_mask
    if key_padding_mask is not None:
        padding = logits.new_zeros(key_padding_mask.shape).masked_fill_(key_padding_mask, float("-inf"))
        logits = logits + padding[:, None, None, :]
    return utils.softmax(logits, dim=-1)
