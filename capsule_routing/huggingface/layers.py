"""Attention, layers and positions of a Transformer, with parameters named and initialised as in fairseq.

`reset_parameters` is called for a module after the modules in it (`CapsuleForConditionalGeneration._init_weights`).
"""

import math
from typing import Any, Callable, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding
from transformers.activations import ACT2FN
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_layers import GradientCheckpointingLayer

from capsule_routing import from_options
from capsule_routing.huggingface.cache import LogitsLayer
from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.modules import AttentionRouting, QueryKeyNorm, SelectiveAttention
from capsule_routing.modules.layers import sinusoids


class Memory(NamedTuple):
    """What the layers of a decoder read besides its states.

    Attributes:
        states: the encoder's states `[B, I, C]`.
        padding_mask: `[B, I]`, True marks padding of the source; None without padding.
        cache: what earlier steps kept; None if all positions are given at once.
    """

    states: Tensor
    padding_mask: Optional[Tensor]
    cache: Optional[EncoderDecoderCache]


class Attention(nn.Module):
    """Multi-head attention, `softmax(mask(route(select(norm(Q Kᵀ))))) V`.

    Args:
        size: of the queries' states and of the output.
        heads: the number of heads `H`.
        source_size: of the states that keys and values come from, in a cross-attention; None in a self-attention.
        causal: whether a query cannot attend to later keys.
        norm: of queries and keys; None without it.
        selection: subtracts from the logits what earlier words masked; None without it.
        routing: routes the logits; None without routing.
        dropout: of the attention weights.
        layer: the number of its layer in the cache, from 0.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        *,
        source_size: Optional[int] = None,
        causal: bool = False,
        norm: Optional[QueryKeyNorm] = None,
        selection: Optional[SelectiveAttention] = None,
        routing: Optional[AttentionRouting] = None,
        dropout: float = 0.0,
        layer: int = 0,
    ):
        super().__init__()
        self.heads, self.causal, self.dropout, self.layer = heads, causal, dropout, layer
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
        self, states: Tensor, padding_mask: Optional[Tensor], memory: Optional[Memory] = None
    ) -> Tuple[Tensor, Tensor]:
        """Compute self-attention.

        Args:
            states: `[B, L, C]`; with a cache only the new positions.
            padding_mask: `[B, K]`, True marks padding, also of the positions in the cache; None without padding.
            memory: in a decoder.

        Returns:
            The output `[B, L, C]`, and the attention weights `[B, H, L, K]`.
        """
        q, k, v = (self._heads(projection(states)) for projection in (self.q_proj, self.k_proj, self.v_proj))
        cache = None if memory is None or memory.cache is None else memory.cache.self_attention_cache
        changes = [part for part in (self.selective_attention, self.routing) if part is not None]
        if padding_mask is not None and changes:  # logits of padding are 0, and do not affect others
            new = padding_mask[:, None, -q.size(2) :, None]
            q, k = q.masked_fill(new, 0), k.masked_fill(new, 0)
        q = self.scale * q
        if self.query_key_norm is not None:
            q, k = self.query_key_norm(q, k)
        if cache is not None:
            k, v = cache.update(k, v, self.layer)
        logits = q @ k.mT
        if cache is None:
            for number, part in enumerate(changes):
                logits = part(logits, padding_mask, factors=None if number else (q, k))
        elif changes:
            logits = self._kept(cache).change(changes, logits, padding_mask)
        return self._attend(logits, v, padding_mask)

    def cross(self, states: Tensor, memory: Memory) -> Tuple[Tensor, Tensor]:
        """Attend to the source; arguments and results as in `forward`."""
        cache = memory.cache
        if cache is not None and cache.is_updated.get(self.layer):
            kept: Any = cache.cross_attention_cache.layers[self.layer]
            k, v = kept.keys, kept.values
        else:
            k, v = (self._heads(projection(memory.states)) for projection in (self.k_proj, self.v_proj))
            if cache is not None:
                cache.cross_attention_cache.update(k, v, self.layer)
                cache.is_updated[self.layer] = True
        q = self.scale * self._heads(self.q_proj(states))
        return self._attend(q @ k.mT, v, memory.padding_mask)

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _kept(self, cache: Any) -> LogitsLayer:
        layer = cache.layers[len(cache.layers) // 2 + self.layer]
        if not isinstance(layer, LogitsLayer):
            raise TypeError("a model that changes attention logits needs a cache of its own: pass none, or new_cache()")
        return layer

    def _attend(self, logits: Tensor, values: Tensor, padding_mask: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        queries, keys = logits.shape[2:]
        if self.causal and queries > 1:
            later = torch.ones(queries, keys, dtype=torch.bool, device=logits.device).triu(1 + keys - queries)
            logits = logits.masked_fill(later, -math.inf)
        if padding_mask is not None:
            # Not minus infinity: the query of padding before the first word has only keys of padding.
            lowest = torch.finfo(logits.dtype).min / 2
            padding = logits.new_zeros(padding_mask.shape).masked_fill_(padding_mask, lowest)
            logits = logits + padding[:, None, None, :]
        weights = logits.softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32)).type_as(values)
        output = dropout(weights, self.dropout, self.training) @ values
        return self.out_proj(output.transpose(1, 2).flatten(2)), weights


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
        options: Any = {"dropout": config.attention_dropout, "layer": number}
        norm, selection = from_options.query_key_norm(config, side), from_options.selective_attention(config, side)
        self.self_attn = Attention(
            size, heads, causal=decoder, norm=norm, selection=selection, routing=routing, **options
        )
        self.self_attn_layer_norm = nn.LayerNorm(size)
        if decoder:
            self.encoder_attn = Attention(size, heads, source_size=config.encoder_embed_dim, **options)
            self.encoder_attn_layer_norm = nn.LayerNorm(size)
        self.fc1, self.fc2 = nn.Linear(size, inner), nn.Linear(inner, size)
        self.final_layer_norm = nn.LayerNorm(size)

    def forward(
        self, states: Tensor, padding_mask: Optional[Tensor], memory: Optional[Memory] = None
    ) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
        """Compute the layer; arguments as in `Attention.forward`.

        Returns:
            The states `[B, L, C]`, and the weights `[B, H, L, K]` of the self-attention and of the cross-attention.
        """
        states, own = self._around(
            self.self_attn_layer_norm, states, lambda inner: self.self_attn(inner, padding_mask, memory)
        )
        cross = None
        if memory is not None:
            states, cross = self._around(
                self.encoder_attn_layer_norm, states, lambda inner: self.encoder_attn.cross(inner, memory)
            )
        states, _ = self._around(self.final_layer_norm, states, self._feed_forward)
        return states, own, cross

    def _around(
        self, norm: nn.Module, states: Tensor, part: Callable[[Tensor], Tuple[Tensor, Any]]
    ) -> Tuple[Tensor, Any]:
        """Apply a part with its residual connection and its norm, which is before it or after it."""
        output, weights = part(norm(states) if self.pre_norm else states)
        states = states + dropout(output, self.dropout, self.training)
        return states if self.pre_norm else norm(states), weights

    def _feed_forward(self, states: Tensor) -> Tuple[Tensor, None]:
        inner = dropout(self.activation(self.fc1(states)), self.activation_dropout, self.training)
        return self.fc2(inner), None


class Side(nn.Module):
    """What an encoder and a decoder have in common: embeddings, positions, layers and the last norm.

    Args:
        side: "encoder" or "decoder".
        vocab_size: the number of words.
        input_dim: size of the embeddings.
        routings: of the layers' self-attentions, one for each.
        final_norm: whether a norm follows the last layer.
        positions: the number of positions, if they are learned.
    """

    def __init__(
        self,
        config: CapsuleConfig,
        side: str,
        *,
        vocab_size: int,
        input_dim: int,
        routings: list[Optional[AttentionRouting]],
        final_norm: bool,
        positions: int,
    ):
        super().__init__()
        size, learned = (getattr(config, f"{side}_{name}") for name in ("embed_dim", "learned_pos"))
        self.padding_idx, self.dropout, self.size = config.pad_token_id, config.dropout, size
        self.scale = 1.0 if config.no_scale_embedding else math.sqrt(size)
        self.embed_tokens = nn.Embedding(vocab_size, input_dim, self.padding_idx)
        self.project_in_dim = None if input_dim == size else nn.Linear(input_dim, size, bias=False)
        self.embed_positions = (
            nn.Embedding(positions + self.padding_idx + 1, size, self.padding_idx) if learned else None
        )
        self.layernorm_embedding = nn.LayerNorm(size) if config.layernorm_embedding else None
        self.layers = nn.ModuleList(Layer(config, side, number, routing) for number, routing in enumerate(routings))
        self.layer_norm = nn.LayerNorm(size) if final_norm else None

    def reset_parameters(self) -> None:
        for table in (self.embed_tokens, self.embed_positions):
            if table is not None:
                reset_embedding(table)
        if self.project_in_dim is not None:
            nn.init.xavier_uniform_(self.project_in_dim.weight)

    def embed(self, words: Tensor, padding_mask: Optional[Tensor], earlier: int = 0) -> Tensor:
        """Scale the embeddings of words, and add those of their positions.

        Args:
            words: `[B, L, C]`, as `embed_tokens` gives them.
            padding_mask: `[B, earlier + L]`, True marks padding, which has no position; None without padding.
            earlier: the number of positions before.
        """
        embedded = self.scale * words
        if self.project_in_dim is not None:
            embedded = self.project_in_dim(embedded)
        if padding_mask is None:
            places = torch.arange(earlier + 1, earlier + 1 + words.size(1), device=words.device).expand(words.shape[:2])
        else:
            places = ((~padding_mask).long().cumsum(1) * ~padding_mask)[:, earlier:]
        places = places + self.padding_idx  # that of padding is the index of padding
        if self.embed_positions is None:
            # In float32, as in fairseq. In float64 the result would differ at the end of a long sentence.
            vectors = sinusoids(places, self.size, torch.float32)
            embedded = embedded + vectors.masked_fill(places.eq(self.padding_idx).unsqueeze(-1), 0).to(embedded.dtype)
        else:
            embedded = embedded + embedding(places, self.embed_positions.weight)
        if self.layernorm_embedding is not None:
            embedded = self.layernorm_embedding(embedded)
        return dropout(embedded, self.dropout, self.training)


@torch.no_grad()
def reset_embedding(table: nn.Embedding) -> None:
    """Draw vectors of about length 1, and set that of padding to 0."""
    nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
    if table.padding_idx is not None:
        nn.init.zeros_(table.weight[table.padding_idx])
