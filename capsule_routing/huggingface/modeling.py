"""A Transformer with any of the mechanisms as a model of Hugging Face transformers."""

import math
from dataclasses import dataclass
from os import PathLike
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, GenerationMixin, LogitsProcessor, LogitsProcessorList, PreTrainedModel
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import ModelOutput, Seq2SeqLMOutput
from transformers.utils import logging
from transformers.utils.generic import can_return_tuple

from capsule_routing import from_options
from capsule_routing.errors import UserError
from capsule_routing.huggingface.cache import VotesLayer, new_cache
from capsule_routing.huggingface.configuration import PRESETS, CapsuleConfig
from capsule_routing.huggingface.layers import Memory, Side, reset_embedding
from capsule_routing.losses import guided_losses, label_smoothed_cross_entropy, weighted_sum
from capsule_routing.modules import GlobalRepresentation, HolisticContext, PastFutureOutput, SourceParts
from capsule_routing.presets import BIG, TINY

logger = logging.get_logger(__name__)


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


@dataclass
class CapsuleOutput(Seq2SeqLMOutput):
    """What the model gives: the output of every translation model in transformers, and the parts of the loss.

    Attributes:
        losses: with labels, the means of a batch as fairseq logs them, without weights and gradients: `nll_loss`, in
            bits for a word, and of a model with these heads `bow_loss`, in bits for a word of a bag, and `bca_loss`, a
            squared distance (`capsule_routing.losses.guided_losses`).
    """

    losses: Optional[Dict[str, Tensor]] = None


class Decoded(NamedTuple):
    """What the decoder gives.

    Attributes:
        logits: `[B, T, V]`.
        states: the embeddings and the output of each layer, `[B, T, C]`.
        self_attentions, cross_attentions: the weights of each layer, `[B, H, T, K]`.
        routed: PAST and FUTURE, with what the heads of their losses compute; None without them, or with a cache.
    """

    logits: Tensor
    states: Tuple[Tensor, ...]
    self_attentions: Tuple[Tensor, ...]
    cross_attentions: Tuple[Tensor, ...]
    routed: Optional[PastFutureOutput]


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
            routings=[from_options.decoder_attention_routing(config) for _ in range(config.decoder_layers)],
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
            self.context_gate = from_options.context_gate(config, size)
        self.past_future: Optional[HolisticContext] = None
        if config.past_future != "none":
            self.past_future = from_options.past_future(config, config.encoder_embed_dim, size)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.project_out_dim is not None:
            nn.init.xavier_uniform_(self.project_out_dim.weight)
        nn.init.normal_(self.output_projection.weight, std=self.output_projection.in_features**-0.5)

    def forward(
        self,
        words: Tensor,
        padding_mask: Optional[Tensor],
        encoded: CapsuleEncoderOutput,
        cache: Optional[EncoderDecoderCache],
    ) -> Decoded:
        """Decode words; with a cache only the new ones.

        Args:
            words: `[B, T, C]`, as `embed_tokens` gives them.
            padding_mask: of all tokens, also those in the cache; True marks padding, None without padding.
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
        routed = None
        if self.past_future is not None:
            parts = self._source_parts(self.past_future, memory, encoded.padding_mask)
            states, routed = self.past_future.context(states, parts, encoded.padding_mask)
            routed = self.past_future.with_heads(routed) if cache is None else None
        return Decoded(self.output_projection(states), tuple(outputs), tuple(own), tuple(cross), routed)

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


def search_of_fairseq(config: CapsuleConfig) -> GenerationConfig:
    """Return options of `generate()` that search as `fairseq-generate --beam 5` does."""
    return GenerationConfig(
        num_beams=5,
        length_penalty=1.0,  # the score is divided by the length, with `</s>` counted
        early_stopping=True,  # a sentence is complete when it has as many translations as beams
        # The first `</s>`, 200 words and the last `</s>`; the last one is not fed to the decoder.
        max_length=min(202, config.max_target_positions + 1),
        min_length=2,  # the first `</s>`, and no other one after it
        suppress_tokens=[config.pad_token_id],
        bos_token_id=config.bos_token_id,
        pad_token_id=config.pad_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
    )


class CapsuleForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """The model. Its parameters have the names that they have in a checkpoint of fairseq, and start as there.

    `generate()` searches as `search_of_fairseq` says, if no other options are given.
    """

    config_class = CapsuleConfig
    config: CapsuleConfig
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = True  # a Trainer passes num_items_in_batch

    def __init__(self, config: CapsuleConfig):
        config.validate()  # options may have been set after it was built
        super().__init__(config)
        self.encoder, self.decoder = CapsuleEncoder(config), CapsuleDecoder(config)
        first = "encoder" if config.share_all_embeddings else "decoder"
        self._tied_weights_keys = {"decoder.output_projection.weight": f"{first}.embed_tokens.weight"}
        if config.share_all_embeddings:
            self._tied_weights_keys["decoder.embed_tokens.weight"] = "encoder.embed_tokens.weight"
        self.generation_config = search_of_fairseq(config)
        self.post_init()

    @classmethod
    def from_baseline(
        cls,
        baseline: Union[str, "PathLike[str]", "CapsuleForConditionalGeneration"],
        preset: Optional[str] = None,
        **options: Any,
    ) -> "CapsuleForConditionalGeneration":
        """Start from a trained model, and add mechanisms to it: the fine-tuning of the papers.

        PAST and FUTURE and the global representation start such that the model computes the logits of the baseline,
        bit for bit. A log message states which parameters are new.

        Args:
            baseline: a model, or its folder.
            preset: the mechanisms of this preset are added. The sizes stay those of the baseline.
            options: further options of `CapsuleConfig`, such as `past_future="gdr"`.

        Raises:
            UserError: the new model does not have a parameter of the baseline, or the preset is unknown.
        """
        trained = baseline if isinstance(baseline, CapsuleForConditionalGeneration) else cls.from_pretrained(baseline)
        if preset is not None:
            CapsuleConfig.preset(preset)
            added = {name: value for name, value in PRESETS[preset].items() if name not in {**BIG, **TINY}}
            options = {**added, **options}
        model = cls(CapsuleConfig(**{**trained.config.to_dict(), **options}))
        new, unknown = model.load_state_dict(trained.state_dict(), strict=False)
        if unknown:
            raise UserError(f"the new model has no {unknown[0]}; turn off no mechanism of the baseline")
        places = sorted({".".join(name.split(".")[:2]) for name in new})
        logger.warning(f"{len(new)} new parameters, in {', '.join(places)}" if new else "no new parameters")
        model.generation_config = trained.generation_config
        return model.to(trained.device, trained.dtype)  # type: ignore[arg-type]

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise a module after those in it, and keep what was loaded from a file."""
        weights = list(module.parameters())
        loaded = {weight: weight.detach().clone() for weight in weights if getattr(weight, "_is_hf_initialized", False)}
        if len(loaded) == len(weights):
            return
        reset: Any = getattr(module, "reset_parameters", None)
        if isinstance(module, nn.Embedding):
            reset_embedding(module)
        elif reset is not None:
            reset()
        with torch.no_grad():
            for weight, value in loaded.items():
                weight.copy_(value)

    @classmethod
    def is_custom_code(cls) -> bool:
        """Return False: transformers would not initialise a module whose parameters are all in modules in it."""
        return False

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # `forward` makes the cache

    def _get_logits_processor(self, generation_config: Any, *args: Any, **options: Any) -> LogitsProcessorList:
        processors = super()._get_logits_processor(generation_config, *args, **options)  # type: ignore[misc]
        # The first one: sampling may leave out `</s>` before.
        processors.insert(0, EndAtLongest(generation_config.max_length, self.config.eos_token_id))
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
        """Return the inputs `[B, T]` of the decoder for labels `[B, T]`, padded on either side with -100 or `<pad>`."""
        padding = self._padding(labels)
        first = (~padding).cumsum(1).eq(1) & ~padding
        inputs = labels.roll(1, dims=1).masked_fill(first, self.config.decoder_start_token_id)
        return inputs.masked_fill(padding, self.config.pad_token_id)

    def _padding(self, labels: Tensor) -> Tensor:
        return labels.eq(-100) | labels.eq(self.config.pad_token_id)

    def _loss(
        self, decoded: Decoded, labels: Tensor, padding_mask: Tensor, number: Union[Tensor, int, None]
    ) -> Tuple[Tensor, Dict[str, Tensor]]:
        """Return the loss divided by a number, by default that of the words, and the parts of `CapsuleOutput`."""
        config, words = self.config, (~padding_mask).sum()
        loss, likelihood = label_smoothed_cross_entropy(decoded.logits, labels, padding_mask, config.label_smoothing)
        means = {"nll_loss": likelihood / words / math.log(2)}
        if decoded.routed is not None:
            weights = {"bow": config.bow_weight, "bca": config.bca_weight}
            heads = {name: head for name, head in decoded.routed.heads.items() if weights[name]}
            parts = guided_losses(
                decoded.routed._replace(heads=heads), labels, padding_mask, reduction=config.guided_reduction
            )
            weighted = {name: (weights[name], part.value) for name, part in parts.items()}
            total, values, _ = weighted_sum(weighted, self.decoder.output_projection.weight)
            loss = loss + total
            for name, part in parts.items():
                means[f"{name}_loss"] = values[name] / part.number / part.unit
        return loss / (words if number is None else number), means

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
        num_items_in_batch: Union[Tensor, int, None] = None,
    ) -> Union[CapsuleOutput, Tuple[Any, ...]]:
        """Compute the logits of the next tokens, and the loss `(label-smoothed NLL + Σ weight · loss) / words`.

        Args:
            input_ids: sources `[B, I]`, with `</s>` at the end, padded on either side.
            attention_mask: `[B, I]`, 0 at padding of the source; by default it follows from the tokens.
            decoder_input_ids: `[B, T]`, `</s>` and the target; with a cache only the new tokens.
            decoder_attention_mask: `[B, T]`, 0 at padding, also of the tokens in the cache. Padding on the right needs
                none.
            encoder_outputs: what the encoder of this model returned, instead of `input_ids`.
            cache: of an earlier call, or of `new_cache()`.
            labels: `[B, T]`, the target with `</s>` at the end, padded on either side with -100 or `<pad>`.
            use_cache: whether the result has a cache for the next call; by default not in training.
            inputs_embeds: `[B, I, C]`, embeddings of the source as `get_input_embeddings()` gives them, instead of
                `input_ids`.
            decoder_inputs_embeds: `[B, T, C]`, those of the target, instead of `decoder_input_ids`.
            num_items_in_batch: what the loss is divided by instead of the number of words in `labels`: the number of
                words in all batches whose gradients are summed.

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
            use_cache = self.config.use_cache and labels is None and not self.training
        if use_cache and cache is None:
            cache = self.new_cache()
        padding_mask = None if decoder_attention_mask is None else decoder_attention_mask.eq(0)
        if padding_mask is None and labels is not None:
            padding_mask = self._padding(labels)
        decoded = self.decoder(decoder_inputs_embeds, padding_mask, encoder_outputs, cache)
        loss = losses = None
        if labels is not None:
            loss, losses = self._loss(decoded, labels, self._padding(labels), num_items_in_batch)
        elif self.training and decoded.routed is not None and decoded.routed.heads:
            # The label smoothing of a Trainer takes the labels away, for instance.
            logger.warning_once(
                "without labels the losses of PAST and FUTURE are not computed; set label_smoothing here"
            )
        return CapsuleOutput(
            loss=loss,
            losses=losses,
            logits=decoded.logits,
            cache=cache,
            decoder_hidden_states=decoded.states if output_hidden_states else None,
            decoder_attentions=decoded.self_attentions if output_attentions else None,
            cross_attentions=decoded.cross_attentions if output_attentions else None,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )
