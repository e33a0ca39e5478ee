"""The encoder and the decoder: embeddings, positions and layers, with parameters named and initialised as in fairseq.

`reset_parameters` is called for a module after the modules in it (`CapsuleForConditionalGeneration._init_weights`).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import ModelOutput

from capsule_routing import from_options
from capsule_routing.functions.compiled import is_traced
from capsule_routing.functions.types import Mask
from capsule_routing.huggingface.cache import routed_layer
from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.huggingface.layers import Layer
from capsule_routing.modules import AttentionRouting, GlobalRepresentation, HolisticContext, PastFutureOutput, Projected
from capsule_routing.modules.layers import sinusoids


@dataclass
class CapsuleEncoderOutput(ModelOutput):
    """What the encoder gives.

    Attributes:
        last_hidden_state: `[B, I, C]`.
        hidden_states: the embeddings and the output of each layer, `[B, I, C]`, if requested.
        attentions: the weights of each self-attention, `[B, H, I, I]`, if requested.
        padding_mask: `[B, I]`, True marks padding.
        vector: the vector of the sentence `[B, C]` of the global representation; None without it.
    """

    last_hidden_state: Optional[Tensor] = None
    hidden_states: Optional[Tuple[Tensor, ...]] = None
    attentions: Optional[Tuple[Tensor, ...]] = None
    padding_mask: Optional[Tensor] = None
    vector: Optional[Tensor] = None


class Decoded(NamedTuple):
    """What the decoder gives.

    Attributes:
        features: `[B, T, C]`, what the output layer reads.
        states: the embeddings and the output of each layer, `[B, T, C]`.
        self_attentions, cross_attentions: the weights of each layer, `[B, H, T, K]`, if requested.
        routed: PAST and FUTURE; None without them.
    """

    features: Tensor
    states: Tuple[Tensor, ...]
    self_attentions: Tuple[Optional[Tensor], ...]
    cross_attentions: Tuple[Optional[Tensor], ...]
    routed: Optional[PastFutureOutput]


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
        self.config, self.padding_idx, self.dropout, self.size = config, config.pad_token_id, config.dropout, size
        self.scale = 1.0 if config.no_scale_embedding else math.sqrt(size)
        self.embed_tokens = nn.Embedding(vocab_size, input_dim, self.padding_idx)
        self.project_in_dim = None if input_dim == size else nn.Linear(input_dim, size, bias=False)
        self.embed_positions = (
            nn.Embedding(positions + self.padding_idx + 1, size, self.padding_idx) if learned else None
        )
        self.marian, self.padding_has_positions = config.sinusoids == "marian", config.padding_has_positions
        self.layernorm_embedding = nn.LayerNorm(size) if config.layernorm_embedding else None
        self.layers = nn.ModuleList(Layer(config, side, number, routing) for number, routing in enumerate(routings))
        self.layer_norm = nn.LayerNorm(size) if final_norm else None

    def reset_parameters(self) -> None:
        for table in (self.embed_tokens, self.embed_positions):
            if table is not None:
                reset_embedding(table)
        if self.project_in_dim is not None:
            nn.init.xavier_uniform_(self.project_in_dim.weight)

    def embed(self, words: Tensor, padding_mask: Mask, earlier: int = 0) -> Tensor:
        """Scale the embeddings of words, and add those of their positions.

        Args:
            words: `[B, L, C]`, as `embed_tokens` gives them.
            padding_mask: `[B, earlier + L]`, True marks padding, which has no position; None without padding.
            earlier: the number of positions before.
        """
        embedded = self.scale * words
        if self.project_in_dim is not None:
            embedded = self.project_in_dim(embedded)
        if padding_mask is None or self.padding_has_positions:
            places = (torch.arange(1, words.size(1) + 1, device=words.device) + earlier).expand(words.shape[:2])
        else:
            places = ((~padding_mask).long().cumsum(1) * ~padding_mask)[:, -words.size(1) :]
        places = places + self.padding_idx  # that of padding is the index of padding
        if self.embed_positions is None:
            if self.marian:
                vectors = marian_sinusoids(places - self.padding_idx, self.size)
            else:  # in float32, as in fairseq: in float64 the result would differ at the end of a long sentence
                vectors = sinusoids(places, self.size, torch.float32)
                vectors = vectors.masked_fill(places.eq(self.padding_idx).unsqueeze(-1), 0)
            embedded = embedded + vectors.to(embedded.dtype)
        else:
            embedded = embedded + self.embed_positions(places)
        if self.layernorm_embedding is not None:
            embedded = self.layernorm_embedding(embedded)
        return dropout(embedded, self.dropout, self.training)


class CapsuleEncoder(Side):
    """The encoder, with the vector of the sentence if the configuration has a global representation."""

    main_input_name = "input_ids"

    def __init__(self, config: CapsuleConfig):
        layers = range(1, config.encoder_layers + 1)
        routed = layers if config.encoder_routing_layers is None else config.encoder_routing_layers
        super().__init__(
            config,
            "encoder",
            vocab_size=config.source_vocab_size,
            input_dim=config.encoder_embed_dim,
            routings=[from_options.encoder_attention_routing(config) if layer in routed else None for layer in layers],
            final_norm=config.encoder_normalize_before,
            positions=config.max_source_positions,
        )
        self.global_representation: Optional[GlobalRepresentation] = None
        if config.global_representation != "none":
            self.global_representation = from_options.global_representation(
                config, config.encoder_embed_dim, config.encoder_layers
            )

    def forward(
        self,
        input_ids: Optional[Tensor] = None,
        attention_mask: Optional[Tensor] = None,
        output_attentions: Optional[bool] = None,
        output_hidden_states: Optional[bool] = None,
        return_dict: Optional[bool] = None,
        inputs_embeds: Optional[Tensor] = None,
    ) -> CapsuleEncoderOutput:
        """Encode sources `[B, I]`, or their embeddings `[B, I, C]`, as `embed_tokens` gives them.

        `attention_mask` `[B, I]` is 0 at padding; by default it follows from the tokens, and embeddings have none.

        Raises:
            ValueError: tokens and embeddings are given, or none of them.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        words = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        if attention_mask is not None:
            padding_mask = attention_mask.eq(0)
        elif input_ids is not None:
            padding_mask = input_ids.eq(self.padding_idx)
        else:
            padding_mask = torch.zeros(words.shape[:2], dtype=torch.bool, device=words.device)
        padding = needed(padding_mask)
        states = self.embed(words, padding)
        if padding is not None:
            states = states.masked_fill(padding.unsqueeze(-1), 0)
        mask = attention_mask_of(padding, words.size(1))
        outputs, attentions = [states], []
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = (
            self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        for layer in self.layers:
            states, weights, _ = layer(states, mask, padding, output_attentions=output_attentions)
            outputs.append(states)
            attentions.append(weights)
        if self.layer_norm is not None:
            outputs[-1] = states = self.layer_norm(states)
        vector = None
        if self.global_representation is not None:
            vector = self.global_representation(outputs[1:], padding_mask)
        return CapsuleEncoderOutput(
            last_hidden_state=states,
            hidden_states=tuple(outputs) if output_hidden_states else None,
            attentions=tuple(attentions) if output_attentions else None,
            padding_mask=padding_mask,
            vector=vector,
        )


class CapsuleDecoder(Side):
    """The decoder, with what reads the vector of the sentence, and with PAST and FUTURE, as the configuration says."""

    def __init__(self, config: CapsuleConfig):
        super().__init__(
            config,
            "decoder",
            vocab_size=config.vocab_size,
            input_dim=config.decoder_input_dim,
            routings=[from_options.decoder_attention_routing(config) for _ in range(config.decoder_layers)],
            final_norm=config.decoder_normalize_before and not config.no_decoder_final_norm,
            positions=config.max_target_positions,
        )
        size = config.decoder_output_dim
        self.project_out_dim = (
            None if size == config.decoder_embed_dim else nn.Linear(config.decoder_embed_dim, size, bias=False)
        )
        self.output_projection = nn.Linear(size, config.vocab_size, bias=config.output_bias)
        self.context_gate: Optional[nn.Module] = None
        if config.global_representation != "none":
            self.context_gate = from_options.context_gate(config, size)
        self.past_future: Optional[HolisticContext] = None
        if config.past_future != "none":
            self.past_future = from_options.past_future(config, config.encoder_embed_dim, size)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.project_out_dim is not None:
            nn.init.xavier_uniform_(self.project_out_dim.weight)
        nn.init.normal_(self.output_projection.weight, std=self.output_projection.in_features**-0.5)
        if self.output_projection.bias is not None:
            nn.init.zeros_(self.output_projection.bias)

    def forward(
        self,
        words: Tensor,
        padding_mask: Optional[Tensor],
        encoded: CapsuleEncoderOutput,
        cache: Optional[EncoderDecoderCache],
        output_attentions: bool = False,
    ) -> Decoded:
        """Decode words; with a cache only the new ones.

        Args:
            words: `[B, T, C]`, as `embed_tokens` gives them.
            padding_mask: of all tokens, also those in the cache; True marks padding, None without padding.
        """
        source, source_padding = encoded.last_hidden_state, encoded.padding_mask
        assert source is not None and source_padding is not None
        number, earlier = words.size(1), 0 if cache is None else cache.get_seq_length()
        mask = attention_mask_of(padding_mask, number, causal=True, earlier=earlier, device=words.device)
        source_mask = attention_mask_of(needed(source_padding), number)
        states = self.embed(words, padding_mask, earlier)
        outputs, own, cross = [states], [], []
        for layer in self.layers:
            states, *weights = layer(
                states, mask, padding_mask, source, source_mask, cache=cache, output_attentions=output_attentions
            )
            outputs.append(states)
            own.append(weights[0])
            cross.append(weights[1])
        if self.layer_norm is not None:
            outputs[-1] = states = self.layer_norm(states)
        if self.project_out_dim is not None:
            states = self.project_out_dim(states)
        if self.context_gate is not None:
            states = self.context_gate(states, encoded.vector)
        routed = None
        if self.past_future is not None:
            projected = self._projected(self.past_future, source, source_padding, cache)
            states, routed = self.past_future.context(states, projected, source_padding)
        return Decoded(states, tuple(outputs), tuple(own), tuple(cross), routed)

    @staticmethod
    def _projected(
        past_future: HolisticContext, source: Tensor, padding_mask: Tensor, cache: Optional[EncoderDecoderCache]
    ) -> Projected:
        """Return what PAST and FUTURE need of the source; with a cache it is computed at the first step."""
        if cache is None:
            return past_future.routing(source, None, padding_mask)
        layer = routed_layer(cache.cross_attention_cache, -1)
        if not layer.kept:
            layer.kept = past_future.routing(source, None, padding_mask)
        return Projected(*layer.kept)  # type: ignore[arg-type]


def attention_mask_of(
    padding_mask: Mask, queries: int, *, causal: bool = False, earlier: int = 0, device: Any = None
) -> Mask:
    """Return where a query attends to a key, `[B, 1, queries, K]`, or None where the mask is not needed.

    Args:
        padding_mask: of the keys, `[B, K]`, True marks padding; None without padding.
        causal: whether a query attends to no later key. Without padding and earlier positions that needs no mask.
        earlier: the number of positions before the first query.
    """
    mask = None
    if causal and queries > 1 and (earlier > 0 or padding_mask is not None):
        places = torch.arange(earlier + queries, device=device)
        mask = (places <= places[earlier:].unsqueeze(1))[None, None]
    if padding_mask is not None:
        real = ~padding_mask[:, None, None, :]
        mask = real.expand(-1, -1, queries, -1) if mask is None else mask & real
    return mask


def needed(padding_mask: Optional[Tensor]) -> Optional[Tensor]:
    """Return a mask, or None if no word is padding. Where torch traces, nothing may depend on it: the mask stays."""
    if padding_mask is None or is_traced() or padding_mask.any():
        return padding_mask
    return None


@torch.no_grad()
def reset_embedding(table: nn.Embedding) -> None:
    """Draw vectors of about length 1, and set that of padding to 0."""
    nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
    if table.padding_idx is not None:
        nn.init.zeros_(table.weight[table.padding_idx])


def marian_sinusoids(places: Tensor, size: int) -> Tensor:
    """Compute Marian's sinusoids `[B, L, size]` of places `[B, L]`, counted from 1; the first one has the angle 0."""
    steps = torch.arange(0, size, 2, dtype=torch.float64, device=places.device)
    angles = (places - 1).unsqueeze(-1) * 10000 ** -(steps / size)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
