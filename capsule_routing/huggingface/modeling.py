"""A Transformer with any of the mechanisms as a model of Hugging Face transformers."""

from dataclasses import dataclass
from typing import Any, Optional, Tuple, Union

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, LogitsProcessor, LogitsProcessorList, PreTrainedModel
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import ModelOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple

from capsule_routing.huggingface.cache import VotesLayer, new_cache
from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.huggingface.layers import Memory, Side
from capsule_routing.modules import ContextGate, GlobalRepresentation, HolisticContext, PlainSum, SourceParts
from capsule_routing.modules import from_options as modules


@dataclass
class CapsuleEncoderOutput(ModelOutput):
    """What the encoder gives.

    Attributes:
        last_hidden_state: `[B, I, C]`.
        padding_mask: `[B, I]`, True marks padding.
        vector: the vector of the sentence `[B, C]` of the global representation; None without it.
        hidden_states: the embeddings and the output of each layer, `[B, I, C]`, if requested.
        attentions: the weights of each self-attention, `[B, H, I, I]`, if requested.
    """

    last_hidden_state: Optional[Tensor] = None
    padding_mask: Optional[Tensor] = None
    vector: Optional[Tensor] = None
    hidden_states: Optional[Tuple[Tensor, ...]] = None
    attentions: Optional[Tuple[Tensor, ...]] = None


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
            routings=[modules.encoder_attention_routing(config) if layer in routed else None for layer in layers],
            final_norm=config.encoder_normalize_before,
            positions=config.max_source_positions,
        )
        self.global_representation: Optional[GlobalRepresentation] = None
        if config.global_representation != "none":
            arguments = modules.global_representation(config, config.encoder_embed_dim, config.encoder_layers)
            self.global_representation = GlobalRepresentation(**arguments)

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
        """
        words = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        if attention_mask is not None:
            padding_mask = attention_mask.eq(0)
        elif input_ids is not None:
            padding_mask = input_ids.eq(self.padding_idx)
        else:
            padding_mask = torch.zeros(words.shape[:2], dtype=torch.bool, device=words.device)
        mask = padding_mask if padding_mask.any() else None
        states = self.embed(words, mask)
        if mask is not None:
            states = states.masked_fill(mask.unsqueeze(-1), 0)
        outputs, attentions = [states], []
        for layer in self.layers:
            states, weights, _ = layer(states, mask)
            outputs.append(states)
            attentions.append(weights)
        if self.layer_norm is not None:
            outputs[-1] = states = self.layer_norm(states)
        vector = None
        if self.global_representation is not None:
            vector = self.global_representation(outputs[1:], padding_mask)
        return CapsuleEncoderOutput(
            last_hidden_state=states,
            padding_mask=padding_mask,
            vector=vector,
            hidden_states=tuple(outputs) if output_hidden_states else None,
            attentions=tuple(attentions) if output_attentions else None,
        )


class CapsuleDecoder(Side):
    """The decoder, with what reads the vector of the sentence, and with PAST and FUTURE, as the configuration says."""

    def __init__(self, config: CapsuleConfig):
        super().__init__(
            config,
            "decoder",
            vocab_size=config.vocab_size,
            input_dim=config.decoder_input_dim,
            routings=[modules.decoder_attention_routing(config) for _ in range(config.decoder_layers)],
            final_norm=config.decoder_normalize_before and not config.no_decoder_final_norm,
            positions=config.max_target_positions,
        )
        size = config.decoder_output_dim
        self.project_out_dim = (
            None if size == config.decoder_embed_dim else nn.Linear(config.decoder_embed_dim, size, bias=False)
        )
        self.output_projection = nn.Linear(size, config.vocab_size, bias=False)
        self.context_gate: Optional[nn.Module] = None
        if config.global_representation != "none":
            self.context_gate = ContextGate(size) if config.global_gate == "context" else PlainSum()
        self.past_future: Optional[HolisticContext] = None
        if config.past_future != "none":
            self.past_future = HolisticContext(**modules.past_future(config, config.encoder_embed_dim, size))

    def forward(
        self,
        words: Tensor,
        padding_mask: Optional[Tensor],
        encoded: CapsuleEncoderOutput,
        cache: Optional[EncoderDecoderCache],
    ) -> Tuple[Tensor, Tuple[Tensor, ...], Tuple[Tensor, ...], Tuple[Tensor, ...]]:
        """Decode words; with a cache only the new ones.

        Args:
            words: `[B, T, C]`, as `embed_tokens` gives them.
            padding_mask: of all tokens, also those in the cache; True marks padding, None without padding.

        Returns:
            The logits `[B, T, V]`, the embeddings and the output of each layer `[B, T, C]`, and the weights of the
            self-attentions and of the cross-attentions `[B, H, T, K]`.
        """
        assert encoded.last_hidden_state is not None and encoded.padding_mask is not None
        source_mask = encoded.padding_mask if encoded.padding_mask.any() else None
        memory = Memory(encoded.last_hidden_state, source_mask, cache)
        states = self.embed(words, padding_mask, 0 if cache is None else cache.get_seq_length())
        outputs, own, cross = [states], [], []
        for layer in self.layers:
            states, *weights = layer(states, padding_mask, memory)
            outputs.append(states)
            own.append(weights[0])
            cross.append(weights[1])
        if self.layer_norm is not None:
            outputs[-1] = states = self.layer_norm(states)
        if self.project_out_dim is not None:
            states = self.project_out_dim(states)
        if self.context_gate is not None:
            states = self.context_gate(states, encoded.vector)
        if self.past_future is not None:
            parts = self._source_parts(self.past_future, memory, encoded.padding_mask)
            states, _ = self.past_future.context(states, parts, encoded.padding_mask)
        return self.output_projection(states), tuple(outputs), tuple(own), tuple(cross)

    @staticmethod
    def _source_parts(past_future: HolisticContext, memory: Memory, padding_mask: Tensor) -> SourceParts:
        """Return what PAST and FUTURE need of the source; with a cache it is computed at the first step."""
        if memory.cache is None:
            return past_future.routing.prepare(memory.states, padding_mask)
        layer = memory.cache.cross_attention_cache.layers[-1]
        if not isinstance(layer, VotesLayer):
            raise TypeError("a model with PAST and FUTURE needs a cache of its own: pass none, or its new_cache()")
        if layer.kept is None:
            layer.keep(past_future.routing.prepare(memory.states, padding_mask))
        return layer.kept


class EndAtLongest(LogitsProcessor):
    """Allow only `</s>` at the last position, as fairseq does. Its score is kept, unlike with `forced_eos_token_id`.

    Args:
        longest: the number of tokens, with the first and the last one.
        end: the number of `</s>`.
    """

    def __init__(self, longest: int, end: int):
        self.longest, self.end = longest, end

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.size(1) < self.longest - 1:
            return scores
        return torch.full_like(scores, -torch.inf).index_copy(
            1, input_ids.new_tensor([self.end]), scores[:, [self.end]]
        )


class CapsuleForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """The model. Its parameters have the names that they have in a checkpoint of fairseq."""

    config_class = CapsuleConfig
    config: CapsuleConfig
    main_input_name = "input_ids"

    def __init__(self, config: CapsuleConfig):
        super().__init__(config)
        self.encoder, self.decoder = CapsuleEncoder(config), CapsuleDecoder(config)
        first = "encoder" if config.share_all_embeddings else "decoder"
        self._tied_weights_keys = {"decoder.output_projection.weight": f"{first}.embed_tokens.weight"}
        if config.share_all_embeddings:
            self._tied_weights_keys["decoder.embed_tokens.weight"] = "encoder.embed_tokens.weight"
        self.post_init()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # `forward` makes the cache

    def _get_logits_processor(self, generation_config: Any, *args: Any, **options: Any) -> LogitsProcessorList:
        processors = super()._get_logits_processor(generation_config, *args, **options)  # type: ignore[misc]
        processors.append(EndAtLongest(generation_config.max_length, self.config.eos_token_id))
        return processors

    def new_cache(self) -> EncoderDecoderCache:
        """Return an empty cache for `forward`."""
        return new_cache(self.config)

    def get_encoder(self, *_: Any, **__: Any) -> CapsuleEncoder:
        return self.encoder

    def get_decoder(self) -> CapsuleDecoder:
        return self.decoder

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embed_tokens

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder.output_projection

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return the inputs `[B, T]` of the decoder for labels `[B, T]`, in which -100 marks what is not predicted."""
        start = labels.new_full((len(labels), 1), self.config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.config.pad_token_id)], dim=1)

    @can_return_tuple
    def forward(
        self,
        input_ids: Optional[Tensor] = None,
        attention_mask: Optional[Tensor] = None,
        decoder_input_ids: Optional[Tensor] = None,
        decoder_attention_mask: Optional[Tensor] = None,
        encoder_outputs: Optional[CapsuleEncoderOutput] = None,
        cache: Optional[EncoderDecoderCache] = None,
        labels: Optional[Tensor] = None,
        use_cache: Optional[bool] = None,
        output_attentions: Optional[bool] = None,
        output_hidden_states: Optional[bool] = None,
        inputs_embeds: Optional[Tensor] = None,
        decoder_inputs_embeds: Optional[Tensor] = None,
    ) -> Union[Seq2SeqLMOutput, Tuple[Any, ...]]:
        """Compute the logits of the next tokens.

        Args:
            input_ids: sources `[B, I]`, with `</s>` at the end, padded on either side.
            attention_mask: `[B, I]`, 0 at padding of the source; by default it follows from the tokens.
            decoder_input_ids: `[B, T]`, `</s>` and the target; with a cache only the new tokens.
            decoder_attention_mask: `[B, T]`, 0 at padding, also of the tokens in the cache. Padding on the right needs
                none.
            encoder_outputs: what the encoder of this model returned, instead of `input_ids`.
            cache: of an earlier call, or of `new_cache()`.
            labels: `[B, T]` for the cross-entropy; -100 is ignored.
            use_cache: whether the result has a cache for the next call.
            inputs_embeds: `[B, I, C]`, embeddings of the source as `get_input_embeddings()` gives them, instead of
                `input_ids`.
            decoder_inputs_embeds: `[B, T, C]`, those of the target, instead of `decoder_input_ids`.

        Raises:
            ValueError: no source or no target is given.
            TypeError: `encoder_outputs` or `cache` are those of another model.
        """
        if encoder_outputs is None:
            if input_ids is None and inputs_embeds is None:
                raise ValueError("give input_ids, or inputs_embeds or encoder_outputs")
            options = (attention_mask, output_attentions, output_hidden_states)
            encoder_outputs = self.encoder(input_ids, *options, inputs_embeds=inputs_embeds)
        elif not isinstance(encoder_outputs, CapsuleEncoderOutput):
            raise TypeError("encoder_outputs must be what the encoder of this model returned")
        if decoder_inputs_embeds is None:
            if decoder_input_ids is None:
                if labels is None:
                    raise ValueError("give decoder_input_ids, or decoder_inputs_embeds or labels")
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
            decoder_inputs_embeds = self.decoder.embed_tokens(decoder_input_ids)
        if use_cache is None:
            use_cache = self.config.use_cache and labels is None
        if use_cache and cache is None:
            cache = self.new_cache()
        padding_mask = None if decoder_attention_mask is None else decoder_attention_mask.eq(0)
        logits, states, own, cross = self.decoder(decoder_inputs_embeds, padding_mask, encoder_outputs, cache)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            cache=cache,
            decoder_hidden_states=states if output_hidden_states else None,
            decoder_attentions=own if output_attentions else None,
            cross_attentions=cross if output_attentions else None,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )
