"""fairseq's attention, split so that mechanisms can change its factors, its logits and the combination of its heads."""

from typing import Any, Dict, Mapping, Optional, Tuple

import torch
from fairseq import utils
from fairseq.modules import MultiheadAttention
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from capsule_routing.errors import UserError
from fairseq_capsule.mechanisms.attaching import add_part
from fairseq_capsule.mechanisms.base import IncrementalState

HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")  # of a module
Step = Tuple[Tensor, Tensor, Optional[Tensor]]  # changed logits of a query `[B, H, 1, K]`; values and mask of all keys


class SplitAttention(MultiheadAttention):
    """Attention `combine(softmax(mask(change(Q Kᵀ))) V)` with parameters named as in fairseq; `Q`, `K` may change too.

    Mechanisms attach the parts. Without parts the attention computes what fairseq's does. With `cross`, keys and values
    come from another sequence.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, cross: bool = False, **options: Any):
        super().__init__(embed_dim, num_heads, self_attention=not cross, encoder_decoder_attention=cross, **options)
        self.dropout_module.module_name = "MultiheadAttention"  # the name that --retain-dropout-modules knows
        self.mechanism_parts: Dict[str, str] = {}  # the mechanism of each part, by the attribute that holds it
        self.changes_factors: Tuple[str, ...] = ()  # attributes, in order
        self.changes_logits: Tuple[str, ...] = ()
        self.combines_heads: Optional[str] = None

    def attach(self, mechanism: str, place: str, part: nn.Module) -> None:
        """Attach a part to the "factors" or "logits", after the parts that change them already, or as `out_proj`."""
        if place not in ("factors", "logits", "heads"):
            raise ValueError(f"{mechanism}: an attention has no part {place}; name factors, logits or heads")
        if place == "heads" and self.combines_heads:
            other = self.mechanism_parts[self.combines_heads]
            raise UserError(f"{mechanism} and {other} both combine the heads of an attention; turn one of them off")
        name = add_part(self, mechanism, part, "an attention")
        if place == "factors":
            self.changes_factors = (*self.changes_factors, name)
        elif place == "logits":
            self.changes_logits = (*self.changes_logits, name)
        else:
            self.combines_heads, self.out_proj = name, None

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
        """Compute attention. The arguments are those of fairseq; self-attention ignores `key` and `value`.

        With `incremental_state`, `query` is the last position `[1, B, C]`, and in self-attention the padding mask is
        its own, `[B, 1]`. `attn_mask` is added to the logits.

        Returns:
            The output `[L, B, C]`, and the attention `[B, L, K]` (`[H, B, L, K]` with `need_head_weights`) or None.
        """
        weights = None
        returns_weights = need_weights or need_head_weights
        if incremental_state is None and not (self.changes_logits or returns_weights):
            q, k, v = self.factors(query, key_padding_mask, key)
            dropout = self.dropout_module
            p = dropout.p if dropout.training or dropout.apply_during_inference else 0.0
            output = scaled_dot_product_attention(q, k, v, _added(q, key_padding_mask, attn_mask), p, scale=1.0)
        else:
            if incremental_state is None:
                q, k, v = self.factors(query, key_padding_mask, key)
                logits = self.changed(q @ k.transpose(2, 3), key_padding_mask, (q, k))
            elif self.self_attention:
                logits, v, key_padding_mask = self._extend(incremental_state, query, key_padding_mask)
            else:
                logits, v, key_padding_mask = self._attend_source(incremental_state, query, key, key_padding_mask)
            weights = masked_attention(logits, key_padding_mask, attn_mask)
            output = self.dropout_module(weights.type_as(v)) @ v
        if self.combines_heads is None:
            output = self.out_proj(output.permute(2, 0, 1, 3).reshape_as(query))  # type: ignore[misc]
        else:
            output = getattr(self, self.combines_heads)(output.transpose(1, 2)).transpose(0, 1)
        if weights is None or not returns_weights:
            return output, None
        return output, weights.transpose(0, 1) if need_head_weights else weights.mean(1)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> IncrementalState:
        """Reorder as fairseq does, and the queries of a prefix always: fairseq leaves what belongs to a source."""
        saved: Dict[str, Any] = self._get_input_buffer(incremental_state)
        queries = saved.pop("prev_query", None) if self.encoder_decoder_attention else None
        super().reorder_incremental_state(incremental_state, new_order)
        if queries is not None:
            saved = self._get_input_buffer(incremental_state)
            saved["prev_query"] = queries.index_select(0, new_order)
            self._set_input_buffer(incremental_state, saved)
        return incremental_state

    def changed(
        self,
        logits: Tensor,
        key_padding_mask: Optional[Tensor],
        factors: Tuple[Tensor, Tensor],
        until: Optional[nn.Module] = None,
    ) -> Tensor:
        """Return the logits `[B, H, L, K]` as the parts change them, in order. Only the first part gets the factors.

        With `until`, which is one of the parts, they are what this part reads.
        """
        for index, name in enumerate(self.changes_logits):
            part = getattr(self, name)
            if part is until:
                break
            logits = part(logits, key_padding_mask, factors=None if index else factors)
        return logits

    def factors(
        self, query: Tensor, key_padding_mask: Optional[Tensor], key: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """Return scaled queries and keys as the parts change them, whose products are the logits, and values.

        Each is `[B, H, L, d]`. Those of padding are 0: in self-attention queries and keys, otherwise keys. Arguments as
        in `forward`.
        """
        q, k, v = self._project(query, key)
        if self.self_attention:
            q, k = _zero_padding(key_padding_mask, q * self.scaling, k)
        else:
            q, (k,) = q * self.scaling, _zero_padding(key_padding_mask, k)
        return (*self._changed_factors(q, k), v)

    def _changed_factors(self, q: Tensor, k: Tensor) -> Tuple[Tensor, Tensor]:
        for name in self.changes_factors:
            q, k = getattr(self, name)(q, k)
        return q, k

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).permute(1, 2, 0, 3)

    def _project(self, query: Tensor, key: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Tensor]:
        """Return queries (not scaled yet), keys and values, each `[B, H, L, d]`."""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        fused = self.self_attention and torch.is_grad_enabled()
        if not fused or not all(map(_is_plain, projections)):
            inputs = (query, query, query) if self.self_attention else (query, key, key)
            q, k, v = (self._heads(projection(part)) for projection, part in zip(projections, inputs))
            return q, k, v
        # One product instead of three, and two instead of six in the backward pass. Without gradients this does not
        # pay for copying the weights.
        weight, bias = (torch.cat(parts) for parts in zip(*((part.weight, part.bias) for part in projections)))
        packed = torch.nn.functional.linear(query, weight, bias)
        packed = packed.view(*query.shape[:2], 3, self.num_heads, self.head_dim)
        q, k, v = packed.permute(2, 1, 3, 0, 4)
        return q, k, v

    def _extend(self, incremental_state: IncrementalState, query: Tensor, mask: Optional[Tensor]) -> Step:
        """Append the new position to the prefix."""
        saved: Dict[str, Any] = dict(self._get_input_buffer(incremental_state))
        before = saved["prev_key"].size(2) if saved else 0
        q, k, v = self._project(query)
        saved["prev_key_padding_mask"] = mask = self._append_prev_key_padding_mask(
            mask, saved.get("prev_key_padding_mask"), batch_size=q.size(0), src_len=before + 1, static_kv=False
        )
        mask = None if mask is None else mask.bool()
        q, k = self._changed_factors(*_zero_padding(None if mask is None else mask[:, -1:], q * self.scaling, k))
        for name, row in (("prev_key", k), ("prev_value", v)):
            saved[name] = torch.cat([saved[name], row], 2) if before else row
        parts = [getattr(self, name) for name in self.changes_logits]
        if not all(hasattr(part, "forward_next") for part in parts):
            return self._changed_row(incremental_state, saved, q, saved["prev_key"], mask)
        logits = q @ saved["prev_key"].transpose(2, 3)
        for name, part in zip(self.changes_logits, parts):
            logits, saved[f"prev_{name}"] = part.forward_next(logits, mask, saved.get(f"prev_{name}"))
        self._set_input_buffer(incremental_state, saved)
        return logits, saved["prev_value"], mask

    def _attend_source(
        self, incremental_state: IncrementalState, query: Tensor, key: Optional[Tensor], mask: Optional[Tensor]
    ) -> Step:
        """Attend to another sequence. Keys and values are projected at the first step."""
        saved: Dict[str, Any] = self._get_input_buffer(incremental_state)
        if "prev_key" not in saved:
            projections = self.k_proj, self.v_proj
            saved["prev_key"], saved["prev_value"] = (self._heads(projection(key)) for projection in projections)
            saved["prev_key_padding_mask"] = mask
        mask = saved.get("prev_key_padding_mask")
        mask = None if mask is None else mask.bool()
        q, k = self._heads(self.q_proj(query)) * self.scaling, saved["prev_key"]
        if self.changes_factors:
            q, k = self._changed_factors(q, *_zero_padding(mask, k))
        return self._changed_row(incremental_state, saved, q, k, mask)

    def _changed_row(
        self, state: IncrementalState, saved: Dict[str, Any], queries: Tensor, keys: Tensor, mask: Optional[Tensor]
    ) -> Step:
        """Change the logits of the last query `[B, H, 1, d]`. Parts read the queries of the whole prefix."""
        if self.changes_logits:
            queries = torch.cat([saved["prev_query"], queries], 2) if "prev_query" in saved else queries
            saved["prev_query"] = queries
            (keys,) = _zero_padding(mask, keys)
        self._set_input_buffer(state, saved)
        logits = self.changed(queries @ keys.transpose(2, 3), mask, (queries, keys))
        return logits[:, :, -1:], saved["prev_value"], mask


def _is_plain(part: nn.Module) -> bool:
    """Return whether a part is a linear layer without quantisation or hooks."""
    return type(part) is nn.Linear and not any(getattr(part, name) for name in HOOKS)


def _zero_padding(padding_mask: Optional[Tensor], *rows: Tensor) -> Tuple[Tensor, ...]:
    """Set queries and keys of padding to 0. Their logits are then 0 and do not affect a routing."""
    if padding_mask is None:
        return rows
    mask = padding_mask[:, None, :, None]
    return tuple(row.masked_fill(mask, 0) for row in rows)


def masked_attention(logits: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor]) -> Tensor:
    """Return `softmax(mask(logits))`; arguments as in `SplitAttention.forward`."""
    mask = _added(logits, key_padding_mask, attn_mask)
    return utils.softmax(logits if mask is None else logits + mask, dim=-1)


def _added(like: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor]) -> Optional[Tensor]:
    """Return what both masks add to the logits, `[L, K]` or `[B, 1, 1 or L, K]`; None without masks.

    Masks are added instead of filled in. The softmax then stops the gradient, so no pass masks the gradient.
    """
    mask = None if attn_mask is None else attn_mask.type_as(like)
    if key_padding_mask is None:
        return mask
    # Not minus infinity: the query of padding before the first word has only keys of padding, and its softmax would be
    # NaN. Half of the lowest number, so that the sum with a logit is finite in float16. The softmax is in float32.
    lowest = max(torch.finfo(like.dtype).min, torch.finfo(torch.float32).min) / 2
    padding = like.new_zeros(key_padding_mask.shape).masked_fill_(key_padding_mask, lowest)[:, None, None, :]
    return padding if mask is None else mask + padding


ATTRIBUTES = {"self": "self_attn", "cross": "encoder_attn"}  # of fairseq's layers, by the kind of the attention


def change_attention(layer: nn.Module, kind: str, mechanism: str, parts: Mapping[str, nn.Module]) -> None:
    """Attach the parts of a mechanism to the "self" or "cross" attention of a fairseq Transformer layer.

    The attention is replaced, unless another mechanism has replaced it. A UserError says what does not fit.
    """
    if not isinstance(layer, (TransformerEncoderLayerBase, TransformerDecoderLayerBase)):
        wrapper = type(layer).__name__
        raise UserError(f"{mechanism} does not work in a layer wrapped as {wrapper}; use another --ddp-backend")
    attention = getattr(layer, ATTRIBUTES[kind])
    if kind == "self" and not attention.self_attention:
        raise UserError(f"--cross-self-attention does not work with {mechanism}; turn one of them off")
    if attention.use_xformers:
        raise UserError(f"{mechanism} does not work with the attention of xformers; leave its option out")
    if not isinstance(attention, SplitAttention):
        sizes = {} if kind == "self" else {"kdim": attention.kdim, "vdim": attention.vdim}
        attention = SplitAttention(
            attention.embed_dim,
            attention.num_heads,
            cross=kind == "cross",
            dropout=attention.dropout_module.p,
            q_noise=layer.quant_noise,
            qn_block_size=layer.quant_noise_block_size,
            **sizes,
        )
        setattr(layer, ATTRIBUTES[kind], attention)
    for place, part in parts.items():
        attention.attach(mechanism, place, part)
