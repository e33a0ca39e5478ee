"""Attention and layers of a Transformer, with parameters named and initialised as in fairseq.

`reset_parameters` is called for a module after the modules in it (`CapsuleForConditionalGeneration._init_weights`).
"""

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from transformers.activations import ACT2FN
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from capsule_routing import from_options
from capsule_routing.functions.types import Mask
from capsule_routing.huggingface.cache import routed_layer
from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.modules import AttentionRouting, QueryKeyNorm, SelectiveAttention

Output = Tuple[Tensor, Optional[Tensor]]


def eager_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Mask, scaling: float, dropout: float
) -> Output:
    """Attend with weights that are returned; arguments as those of transformers' attention functions."""
    return attend(scaling * query @ key.mT, value, attention_mask, module.is_causal, dropout)


def attend(logits: Tensor, values: Tensor, mask: Mask, causal: bool, probability: float) -> Output:
    """Return the output `[B, L, H, d]` and the weights `[B, H, L, K]`. The mask, `[B, 1, L, K]`, is True at keys."""
    if mask is None and causal and logits.size(2) > 1:
        mask = torch.ones(logits.shape[2:], dtype=torch.bool, device=logits.device).tril()
    if mask is not None:
        # Not minus infinity: the query of padding before the first word has no keys.
        logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    weights = logits.softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32)).type_as(values)
    output = dropout(weights, probability, probability > 0) @ values
    return output.transpose(1, 2), weights


class Attention(nn.Module):
    """Multi-head attention, `softmax(mask(route(select(norm(Q Kᵀ))))) V`.

    What changes no logits is computed by the attention function of transformers that the configuration names.

    Args:
        config: names the attention function and the probability of dropping weights.
        size: of the queries' states and of the output.
        heads: the number of heads `H`.
        source_size: of the states that keys and values come from, in a cross-attention; None in a self-attention.
        causal: whether a query cannot attend to later keys.
        norm: of queries and keys; None without it.
        selection: subtracts from the logits what earlier words masked; None without it.
        routing: routes the logits; None without routing.
        layer: the number of its layer in the cache, from 0.
    """

    def __init__(
        self,
        config: CapsuleConfig,
        size: int,
        heads: int,
        *,
        source_size: Optional[int] = None,
        causal: bool = False,
        norm: Optional[QueryKeyNorm] = None,
        selection: Optional[SelectiveAttention] = None,
        routing: Optional[AttentionRouting] = None,
        layer: int = 0,
    ):
        super().__init__()
        self.config, self.heads, self.is_causal, self.layer = config, heads, causal, layer
        self.scale = (size // heads) ** -0.5
        self.q_proj, self.out_proj = nn.Linear(size, size), nn.Linear(size, size)
        self.k_proj, self.v_proj = (nn.Linear(source_size or size, size) for _ in "kv")
        self.query_key_norm, self.selective_attention, self.routing = norm, selection, routing

    def reset_parameters(self) -> None:
        gain = 2**-0.5 if self.k_proj.in_features == self.q_proj.in_features else 1.0
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        states: Tensor,
        mask: Mask,
        padding_mask: Mask = None,
        source: Optional[Tensor] = None,
        cache: Optional[EncoderDecoderCache] = None,
        output_attentions: bool = False,
    ) -> Output:
        """Compute self-attention, or attention to a source.

        Args:
            states: `[B, L, C]`; with a cache only the new positions.
            mask: `[B, 1, L, K]`, True at the keys of a query; None if all are, or under `causal` all earlier ones.
            padding_mask: of a self-attention, `[B, K]`, True marks padding, also of the positions in the cache.
            source: `[B, I, C']`, in a cross-attention.
            cache: what earlier steps kept, and now keep this one.
            output_attentions: whether the weights are returned.

        Returns:
            The output `[B, L, C]`, and the attention weights `[B, H, L, K]` or None.
        """
        q = self._heads(self.q_proj(states))
        probability = self.config.attention_dropout if self.training else 0.0
        if source is not None:
            k, v = self._of_source(source, cache)
        else:
            k, v = self._heads(self.k_proj(states)), self._heads(self.v_proj(states))
            if self.query_key_norm is not None or self.changes:
                logits, v = self._changed_logits(q, k, v, padding_mask, cache)
                return self._projected(*attend(logits, v, mask, self.is_causal, probability), output_attentions)
            if cache is not None:
                k, v = cache.self_attention_cache.update(k, v, self.layer)
        # On a CPU the fused function takes longer than two products for the one query of a step.
        is_step = q.device.type == "cpu" and q.size(2) == 1
        implementation = "eager" if output_attentions or is_step else self.config._attn_implementation
        function: Callable[..., Output] = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention)
        return self._projected(
            *function(self, q, k, v, mask, scaling=self.scale, dropout=probability), output_attentions
        )

    @property
    def changes(self) -> Tuple[nn.Module, ...]:
        """The modules that change the logits, in their order."""
        return tuple(part for part in (self.selective_attention, self.routing) if part is not None)

    def _changed_logits(
        self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Mask, cache: Optional[EncoderDecoderCache]
    ) -> Tuple[Tensor, Tensor]:
        """Return the logits `[B, H, L, K]` before the mask, and the values of all keys."""
        if padding_mask is not None and self.changes:  # logits of padding are 0, and do not affect others
            new = padding_mask[:, None, -q.size(2) :, None]
            q, k = q.masked_fill(new, 0), k.masked_fill(new, 0)
        q = self.scale * q
        if self.query_key_norm is not None:
            q, k = self.query_key_norm(q, k)
        if cache is not None:
            k, v = cache.self_attention_cache.update(k, v, self.layer)
        logits = q @ k.mT
        if cache is not None and self.changes:
            kept = routed_layer(cache.self_attention_cache, self.layer)
            return kept.change_logits(self.changes, logits, padding_mask), v
        for number, part in enumerate(self.changes):
            logits = part(logits, padding_mask, factors=None if number else (q, k))
        return logits, v

    def _of_source(self, source: Tensor, cache: Optional[EncoderDecoderCache]) -> Tuple[Tensor, Tensor]:
        """Return keys and values of the source; with a cache they are computed at the first step."""
        if cache is not None and cache.is_updated.get(self.layer):
            kept: Any = cache.cross_attention_cache.layers[self.layer]
            return kept.keys, kept.values
        k, v = self._heads(self.k_proj(source)), self._heads(self.v_proj(source))
        if cache is not None:
            k, v = cache.cross_attention_cache.update(k, v, self.layer)
            cache.is_updated[self.layer] = True
        return k, v

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _projected(self, output: Tensor, weights: Optional[Tensor], output_attentions: bool) -> Output:
        return self.out_proj(output.flatten(2)), weights if output_attentions else None


class Layer(GradientCheckpointingLayer):
    """A layer of an encoder or decoder.

    Args:
        side: "encoder" or "decoder".
        number: its place, from 0.
        routing: routes the logits of its self-attention, or None.
    """

    def __init__(self, config: CapsuleConfig, side: str, number: int, routing: Optional[AttentionRouting]):
        super().__init__()
        size, heads, inner = (
            getattr(config, f"{side}_{name}") for name in ("embed_dim", "attention_heads", "ffn_embed_dim")
        )
        decoder = side == "decoder"
        self.pre_norm = getattr(config, f"{side}_normalize_before")
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.activation = ACT2FN[config.activation]
        norm, selection = from_options.query_key_norm(config, side), from_options.selective_attention(config, side)
        self.self_attn = Attention(
            config, size, heads, causal=decoder, norm=norm, selection=selection, routing=routing, layer=number
        )
        self.self_attn_layer_norm = nn.LayerNorm(size)
        if decoder:
            self.encoder_attn = Attention(config, size, heads, source_size=config.encoder_embed_dim, layer=number)
            self.encoder_attn_layer_norm = nn.LayerNorm(size)
        self.fc1, self.fc2 = nn.Linear(size, inner), nn.Linear(inner, size)
        self.final_layer_norm = nn.LayerNorm(size)

    def forward(
        self,
        states: Tensor,
        mask: Mask,
        padding_mask: Mask,
        source: Optional[Tensor] = None,
        source_mask: Mask = None,
        cache: Optional[EncoderDecoderCache] = None,
        output_attentions: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
        """Compute the layer; arguments as in `Attention.forward`, `source_mask` is the mask of the cross-attention.

        Returns:
            The states `[B, L, C]`, and on request the weights `[B, H, L, K]` of self-attention and cross-attention.
        """

        def attend_to_itself(inner: Tensor) -> Output:
            return self.self_attn(inner, mask, padding_mask, None, cache, output_attentions)

        def attend_to_the_source(inner: Tensor) -> Output:
            return self.encoder_attn(inner, source_mask, None, source, cache, output_attentions)

        states, own = self._around(self.self_attn_layer_norm, states, attend_to_itself)
        cross = None
        if source is not None:
            states, cross = self._around(self.encoder_attn_layer_norm, states, attend_to_the_source)
        states, _ = self._around(self.final_layer_norm, states, self._feed_forward)
        return states, own, cross

    def _around(self, norm: nn.Module, states: Tensor, part: Callable[[Tensor], Output]) -> Output:
        """Apply a part with its residual connection and its norm, which is before it or after it."""
        output, weights = part(norm(states) if self.pre_norm else states)
        states = states + dropout(output, self.dropout, self.training)
        return states if self.pre_norm else norm(states), weights

    def _feed_forward(self, states: Tensor) -> Output:
        inner = dropout(self.activation(self.fc1(states)), self.activation_dropout, self.training)
        return self.fc2(inner), None
