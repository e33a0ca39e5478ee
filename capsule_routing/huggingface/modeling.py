"""A Transformer with any of the mechanisms as a model of Hugging Face transformers."""

import math
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from typing import Any, Callable, Dict, Iterator, NoReturn, Optional, Tuple, Union

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import GenerationMixin, LogitsProcessorList, PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import ModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from transformers.utils import logging
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import can_return_tuple

from capsule_routing.errors import UserError
from capsule_routing.functions.compiled import is_traced
from capsule_routing.huggingface.cache import check_cache
from capsule_routing.huggingface.configuration import PRESETS, CapsuleConfig
from capsule_routing.huggingface.encoder_decoder import (
    CapsuleDecoder,
    CapsuleEncoder,
    CapsuleEncoderOutput,
    Decoded,
    reset_embedding,
)
from capsule_routing.huggingface.pretrained import plain_model
from capsule_routing.huggingface.search import processors_of_fairseq, search_of_fairseq
from capsule_routing.huggingface.tokenization import CapsuleTokenizer
from capsule_routing.losses import (
    VocabularyLoss,
    guided_losses,
    label_smoothed_cross_entropy,
    smoothed_cross_entropy,
    weighted_sum,
)
from capsule_routing.modules import ContextGate
from capsule_routing.modules.layers import is_bare
from capsule_routing.presets import BIG, TINY

logger = logging.get_logger(__name__)


@dataclass
class CapsuleOutput(Seq2SeqLMOutput):
    """What the model gives: the output of every translation model in transformers, and the parts of the loss.

    Attributes:
        losses: with labels, the means of a batch as fairseq logs them, without weights and gradients: `nll_loss`, in
            bits for a word, and of a model with these heads `bow_loss`, in bits for a word of a bag, and `bca_loss`, a
            squared distance (`capsule_routing.losses.guided_losses`).
        routing: on request, of the mechanisms that the model has. `assignment` `[B, T, I, 3]`: the shares of each
            source word in PAST, FUTURE and neither at each step (`PastFutureOutput.assignment`). `global_gate` `[B, T,
            C]`: how much each state takes of the vector of the sentence. `encoder_vertical`, `encoder_horizontal`,
            `decoder_horizontal`: what routing adds to the logits, `[B, H, L, L]` of each layer that routes.
    """

    losses: Optional[Dict[str, Tensor]] = None
    routing: Optional[Dict[str, Any]] = None


def warn_once(message: str) -> None:
    """Log a warning, but not where torch traces: no graph can hold it."""
    if not is_traced():
        logger.warning_once(message)


class CapsuleModel(PreTrainedModel):
    """The model without its loss: states for AutoModel. Parameters are named, and start, as those of fairseq."""

    config_class = CapsuleConfig
    config: CapsuleConfig
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["Layer"]
    _supports_sdpa = True

    def __init__(self, config: CapsuleConfig):
        if config.share_all_embeddings:
            config.source_vocab_size = config.vocab_size
        config.validate()  # options may have been set after it was built
        super().__init__(config)
        self.encoder, self.decoder = CapsuleEncoder(config), CapsuleDecoder(config)
        first = "encoder" if config.share_all_embeddings else "decoder"
        self._tied_weights_keys = {"decoder.output_projection.weight": f"{first}.embed_tokens.weight"}
        if config.share_all_embeddings:
            self._tied_weights_keys["decoder.embed_tokens.weight"] = "encoder.embed_tokens.weight"
        self.post_init()

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

    def __prepare_scriptable__(self) -> NoReturn:
        raise UserError("torch.jit.script cannot read a model of transformers; trace its logits with torch.jit.trace")

    def get_encoder(self, *_: Any, **__: Any) -> CapsuleEncoder:
        return self.encoder

    def get_decoder(self) -> CapsuleDecoder:
        return self.decoder

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: Any) -> None:
        """Replace the table of the source, and of both sides if they share it."""
        self.encoder.embed_tokens = value
        if self.config.share_all_embeddings:
            self.decoder.embed_tokens = value

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder.output_projection

    def set_output_embeddings(self, new_embeddings: Any) -> None:
        self.decoder.output_projection = new_embeddings

    def resize_token_embeddings(
        self, new_num_tokens: Optional[int] = None, pad_to_multiple_of: Optional[int] = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        """Change the number of words: of both sides if their dictionaries have as many; otherwise that of the source.

        `resize_decoder_token_embeddings` changes that of the target alone.
        """
        both = self.config.source_vocab_size == self.config.vocab_size
        resized = self._get_resized_embeddings(
            self.encoder.embed_tokens, new_num_tokens, pad_to_multiple_of, mean_resizing
        )
        self.encoder.embed_tokens = resized
        if both:
            self._resize_target(len(resized.weight), mean_resizing)
        self.config.source_vocab_size = len(resized.weight)
        return resized

    def resize_decoder_token_embeddings(self, new_num_tokens: int, mean_resizing: bool = True) -> nn.Embedding:
        """Change the number of words of the target, whose dictionary is not that of the source."""
        if self.config.share_all_embeddings:
            raise UserError("the sides share their embeddings; call resize_token_embeddings")
        self._resize_target(new_num_tokens, mean_resizing)
        return self.decoder.embed_tokens

    def _resize_target(self, number: int, mean_resizing: bool) -> None:
        decoder = self.decoder
        if not self.config.tie_word_embeddings:
            # The layer stays, with its hooks; transformers returns a new one, which learns.
            layer: Any = decoder.output_projection
            resized = self._get_resized_lm_head(layer, number, mean_resizing=mean_resizing)
            for name, parameter in resized.named_parameters():
                setattr(layer, name, parameter.requires_grad_(layer.get_parameter(name).requires_grad))
            layer.out_features = number
        decoder.embed_tokens = self._get_resized_embeddings(decoder.embed_tokens, number, None, mean_resizing)
        self.config.vocab_size = self.vocab_size = number
        self.tie_weights()

    def _prepare_static_cache(self, cache_implementation: str, *_: Any, **__: Any) -> NoReturn:
        raise UserError(f"cache_implementation {cache_implementation} cannot keep what routing needs; use dynamic")

    def _decode(
        self,
        input_ids: Optional[Tensor],
        attention_mask: Optional[Tensor],
        decoder_input_ids: Optional[Tensor],
        decoder_padding: Optional[Tensor],
        encoder_outputs: Any,
        cache: Optional[EncoderDecoderCache],
        use_cache: bool,
        output_attentions: Optional[bool],
        output_hidden_states: Optional[bool],
        inputs_embeds: Optional[Tensor],
        decoder_inputs_embeds: Optional[Tensor],
    ) -> Tuple[Decoded, Dict[str, Any]]:
        """Encode and decode; the arguments are those of `CapsuleForConditionalGeneration.forward`.

        Returns:
            What the decoder gives, and the fields that all outputs of translation models have.
        """
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = (
            self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        if encoder_outputs is None:
            if input_ids is None and inputs_embeds is None:
                raise ValueError("give input_ids, or inputs_embeds or encoder_outputs")
            requested = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
            encoded = self.encoder(input_ids, attention_mask, **requested, inputs_embeds=inputs_embeds)
        else:
            encoded = self._encoded(encoder_outputs, attention_mask)
        if decoder_input_ids is not None and decoder_inputs_embeds is not None:
            raise ValueError("give either decoder_input_ids or decoder_inputs_embeds")
        if decoder_inputs_embeds is None:
            if decoder_input_ids is None:
                raise ValueError("give decoder_input_ids, or decoder_inputs_embeds or labels")
            decoder_inputs_embeds = self.decoder.embed_tokens(decoder_input_ids)
        if use_cache and cache is None:
            cache = EncoderDecoderCache(DynamicCache(config=self.config), DynamicCache(config=self.config))
        decoded = self.decoder(decoder_inputs_embeds, decoder_padding, encoded, cache, output_attentions)
        fields = {
            "cache": cache,
            "decoder_hidden_states": decoded.states if output_hidden_states else None,
            "decoder_attentions": decoded.self_attentions if output_attentions else None,
            "cross_attentions": decoded.cross_attentions if output_attentions else None,
            "encoder_last_hidden_state": encoded.last_hidden_state,
            "encoder_hidden_states": encoded.hidden_states,
            "encoder_attentions": encoded.attentions,
        }
        return decoded, fields

    def _encoded(self, given: Any, attention_mask: Optional[Tensor]) -> CapsuleEncoderOutput:
        """Return outputs of an encoder as our own, with the padding of the mask if there is one."""
        if not isinstance(given, ModelOutput):
            states, *further = given
            given = {"last_hidden_state": states}
            for part in further:
                if isinstance(part, Tensor) and part.dim() == 2:
                    given["padding_mask" if part.dtype == torch.bool else "vector"] = part
        encoded = CapsuleEncoderOutput(
            **{name: given.get(name) for name in CapsuleEncoderOutput.__dataclass_fields__}  # type: ignore[attr-defined]
        )
        states = encoded.last_hidden_state
        assert states is not None
        if attention_mask is not None:
            encoded.padding_mask = attention_mask.eq(0)
        elif encoded.padding_mask is None:
            encoded.padding_mask = torch.zeros(states.shape[:2], dtype=torch.bool, device=states.device)
        if encoded.vector is None and self.encoder.global_representation is not None:
            raise ValueError("encoder_outputs must have the vector of the sentence, as this model's encoder returns it")
        return encoded

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: Optional[Tensor] = None,
        attention_mask: Optional[Tensor] = None,
        decoder_input_ids: Optional[Tensor] = None,
        decoder_attention_mask: Optional[Tensor] = None,
        encoder_outputs: Any = None,
        cache: Optional[EncoderDecoderCache] = None,
        use_cache: Optional[bool] = None,
        output_attentions: Optional[bool] = None,
        output_hidden_states: Optional[bool] = None,
        inputs_embeds: Optional[Tensor] = None,
        decoder_inputs_embeds: Optional[Tensor] = None,
    ) -> Union[Seq2SeqModelOutput, Tuple[Any, ...]]:
        """Compute the states `[B, T, C]` that the output layer reads; arguments as in
        `CapsuleForConditionalGeneration.forward`."""
        check_cache(cache)
        decoded, fields = self._decode(
            input_ids,
            attention_mask,
            decoder_input_ids,
            None if decoder_attention_mask is None else decoder_attention_mask.eq(0),
            encoder_outputs,
            cache,
            self._caches(use_cache),
            output_attentions,
            output_hidden_states,
            inputs_embeds,
            decoder_inputs_embeds,
        )
        return Seq2SeqModelOutput(last_hidden_state=decoded.features, **fields)

    def _caches(self, use_cache: Optional[bool]) -> bool:
        """Return whether a cache is made: by default not in training, and not where layers are computed again."""
        if self.training and self.is_activation_checkpointing and torch.is_grad_enabled():
            return False
        return self.config.use_cache and not self.training if use_cache is None else use_cache


class CapsuleForConditionalGeneration(CapsuleModel, GenerationMixin):
    """The model, with its loss.

    `generate()` searches as `search_of_fairseq` says, if no other options are given.
    """

    accepts_loss_kwargs = True  # a Trainer passes num_items_in_batch

    def __init__(self, config: CapsuleConfig):
        super().__init__(config)
        self.generation_config = search_of_fairseq(config)

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
            baseline: a model, or its folder, which is read in float32: training in float16 ends in NaN.
            preset: the mechanisms of this preset are added. The sizes stay those of the baseline.
            options: further options of `CapsuleConfig`, such as `past_future="gdr"`.

        Raises:
            UserError: the new model does not have a parameter of the baseline, or the preset is unknown.
        """
        trained = baseline
        if not isinstance(trained, CapsuleForConditionalGeneration):
            trained = cls.from_pretrained(trained, dtype=torch.float32)
        if preset is not None:
            CapsuleConfig.preset(preset)
            added = {name: value for name, value in PRESETS[preset].items() if name not in {**BIG, **TINY}}
            options = {**added, **options}
        known = trained.config.to_dict()
        # The new model is none of a file, and what it ties follows from its options.
        for name in ("tie_word_embeddings", "transformers_version"):
            known.pop(name)
        model = cls(CapsuleConfig(**{**known, **options}))
        new, unknown = model.load_state_dict(trained.state_dict(), strict=False)
        if unknown:
            raise UserError(f"the new model has no {unknown[0]}; turn off no mechanism of the baseline")
        places = sorted({".".join(name.split(".")[:2]) for name in new})
        logger.warning(f"{len(new)} new parameters, in {', '.join(places)}" if new else "no new parameters")
        model.generation_config = deepcopy(trained.generation_config)
        model.to(trained.device, trained.dtype)  # type: ignore[arg-type]
        return model.train(trained.training)

    @classmethod
    def from_pretrained_translation(
        cls,
        original: Union[str, "PathLike[str]", PreTrainedModel],
        preset: Optional[str] = None,
        **options: Any,
    ) -> "CapsuleForConditionalGeneration":
        """Start from a pretrained translation model of transformers: FSMT, Marian, M2M-100, NLLB-200, BART or mBART.

        The new model has its logits, its generation options and, with a preset or options, further mechanisms
        (`from_baseline`). Its tokenizer stays in use. Options of training without a counterpart are dropped with a
        warning.

        Args:
            original: a model, its folder, or its name on the hub.
            preset, options: as in `from_baseline`.

        Raises:
            UserError: the model is of another class, or has what cannot be expressed; or see `from_baseline`.
        """
        return cls.from_baseline(plain_model(original, cls), preset, **options)

    def _get_logits_processor(self, generation_config: Any, *args: Any, **options: Any) -> LogitsProcessorList:
        processors = super()._get_logits_processor(generation_config, *args, **options)  # type: ignore[misc]
        return processors_of_fairseq(processors, generation_config)

    @staticmethod
    def _reorder_cache(cache: EncoderDecoderCache, beam_idx: Any) -> EncoderDecoderCache:
        """Reorder a cache in a beam search. Beams of a sentence share its source, so what is of the source stays."""
        cache.self_attention_cache.reorder_cache(beam_idx)
        return cache

    def _get_stopping_criteria(self, *args: Any, tokenizer: Any = None, **options: Any) -> Any:
        # The words that stop are those of a translation.
        with tokenizer.of_targets() if isinstance(tokenizer, CapsuleTokenizer) else nullcontext():
            return super()._get_stopping_criteria(*args, tokenizer=tokenizer, **options)  # type: ignore[misc]

    def prepare_inputs_for_generation(self, *args: Any, tokenizer: Any = None, **kwargs: Any) -> Any:
        # transformers gives the tokenizer of `stop_strings` to the model too. It looks for the name `kwargs` here.
        return super().prepare_inputs_for_generation(*args, **kwargs)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return the inputs `[B, T]` of the decoder for labels `[B, T]`, padded on either side with -100 or `<pad>`.

        A label of -100 between others is no word to predict, and `<pad>` as an input.
        """
        ignored, outside = self._ignored(labels), self._outside(labels)
        first = (~outside).cumsum(1).eq(1) & ~outside
        words = labels.masked_fill(ignored, self.config.pad_token_id)
        inputs = words.roll(1, dims=1).masked_fill(first, self.config.decoder_start_token_id)
        return inputs.masked_fill(outside, self.config.pad_token_id)

    def _ignored(self, labels: Tensor) -> Tensor:
        return labels.eq(-100) | labels.eq(self.config.pad_token_id)

    def _outside(self, labels: Tensor) -> Tensor:
        """Return where labels are padding: before the first word and after the last one."""
        words = (~self._ignored(labels)).long()
        return words.cumsum(1).eq(0) | words.flip(1).cumsum(1).flip(1).eq(0)

    def _padding_beside(self, labels: Tensor, inputs: Tensor) -> Tensor:
        """Return where inputs `[B, T]` of the decoder are padding: `<pad>` beside a label that is padding.

        A word beside such a label is only left out of the loss.
        """
        padding = inputs.eq(self.config.pad_token_id)
        if self.config.decoder_start_token_id == self.config.pad_token_id:
            # The last one before a word is the start.
            padding = padding & torch.cat([padding[:, 1:], padding[:, -1:]], dim=1)
        return padding & self._outside(labels)

    def _loss(
        self, decoded: Decoded, logits: Optional[Tensor], labels: Tensor, number: Union[Tensor, int, None]
    ) -> Tuple[Tensor, Dict[str, Tensor]]:
        """Return the loss divided by a number, by default that of the words, and the parts of `CapsuleOutput`.

        Without logits all losses over the vocabulary are computed together, from features.
        """
        config, padding_mask = self.config, self._ignored(labels)
        words = (~padding_mask).sum()
        output_layer: Any = self.decoder.output_projection
        bare = is_bare(output_layer) and output_layer.bias is None
        losses: Dict[str, Tuple[float, Union[Tensor, VocabularyLoss]]] = {}
        if logits is None:
            smoothing, bias = config.label_smoothing, output_layer.bias
            losses["nll"] = (1.0, smoothed_cross_entropy(decoded.features, labels, padding_mask, smoothing, bias))
        parts = {}
        if decoded.routed is not None and self.decoder.past_future is not None:
            weights = {"bow": config.bow_weight, "bca": config.bca_weight}
            parts = guided_losses(
                self.decoder.past_future.with_heads(decoded.routed, [name for name in weights if weights[name]]),
                labels,
                padding_mask,
                reduction=config.guided_reduction,
                layer=None if bare else output_layer,
            )
            losses |= {name: (weights[name], part.value) for name, part in parts.items()}
        total, values, likelihoods = weighted_sum(losses, output_layer.weight if bare or logits is None else None)
        if logits is not None:
            smoothed, likelihoods["nll"] = label_smoothed_cross_entropy(
                logits, labels, padding_mask, config.label_smoothing
            )
            total = total + smoothed
        means = {"nll_loss": likelihoods["nll"] / words / math.log(2)}
        for name, part in parts.items():
            means[f"{name}_loss"] = values[name] / part.number / part.unit
        return total / (words if number is None else number), means

    @contextmanager
    def _recorded_routing(self) -> Iterator[Dict[str, Any]]:
        """Record what the modules of a forward pass route, within a `with`."""
        found: Dict[str, Any] = {}

        def record_capsules(side: str) -> Callable[..., None]:
            def record(module: Any, args: Any, options: Any, _: Any) -> None:
                for name, part in zip(("vertical", "horizontal"), module.capsules(*args, **options)):
                    if part is not None:
                        found[f"{side}_{name}"] = (*found.get(f"{side}_{name}", ()), part)

            return record

        def record_gate(module: Any, args: Any, _: Any) -> None:
            found["global_gate"] = module.gate(*args)

        handles = []
        for side in ("encoder", "decoder"):
            routings = (layer.self_attn.routing for layer in getattr(self, side).layers)
            hook = record_capsules(side)
            handles += [part.register_forward_hook(hook, with_kwargs=True) for part in routings if part is not None]
        if isinstance(self.decoder.context_gate, ContextGate):
            handles.append(self.decoder.context_gate.register_forward_hook(record_gate))
        try:
            yield found
        finally:
            for handle in handles:
                handle.remove()

    def generate(
        self, inputs: Optional[Tensor] = None, *args: Any, output_routing: bool = False, **options: Any
    ) -> Any:
        """Generate as every model of transformers.

        Args:
            output_routing: whether the result, with `return_dict_in_generate=True`, has `routing` as `CapsuleOutput`.
                It is computed from the found sequences in one pass.
        """
        found = super().generate(inputs, *args, **options)
        if not output_routing:
            return found
        if isinstance(found, Tensor):
            raise UserError("output_routing needs return_dict_in_generate=True")
        source = {name: options.get(name) for name in ("input_ids", "attention_mask", "inputs_embeds")}
        source["input_ids"] = inputs if source["input_ids"] is None else source["input_ids"]
        given = {name: value for name, value in source.items() if value is not None}
        if not given:
            raise UserError("output_routing needs the source: give input_ids or inputs_embeds")
        times = len(found.sequences) // len(next(iter(given.values())))
        words = found.sequences[:, :-1]
        mask, prefix = options.get("decoder_attention_mask"), options.get("decoder_input_ids")
        if mask is not None:  # of the given tokens; transformers puts the start before them where they have none
            start = int(prefix is not None and prefix[0, 0] != words[0, 0])
            given["decoder_attention_mask"] = pad(mask, (start, words.size(1) - start - mask.size(1)), value=1)
        repeated = {name: value.repeat_interleave(times, dim=0) for name, value in given.items()}
        with torch.no_grad():
            output = self(**repeated, decoder_input_ids=words, output_routing=True)
        found["routing"] = output.routing
        return found

    def _warn_of_float16(self) -> None:
        if any(weight.requires_grad and weight.dtype == torch.float16 for weight in self.parameters()):
            warn_once(
                "training float16 weights ends in NaN without a master copy; load the model with dtype=torch.float32"
            )

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: Optional[Tensor] = None,
        attention_mask: Optional[Tensor] = None,
        decoder_input_ids: Optional[Tensor] = None,
        decoder_attention_mask: Optional[Tensor] = None,
        encoder_outputs: Any = None,
        cache: Optional[EncoderDecoderCache] = None,
        labels: Optional[Tensor] = None,
        use_cache: Optional[bool] = None,
        output_attentions: Optional[bool] = None,
        output_hidden_states: Optional[bool] = None,
        inputs_embeds: Optional[Tensor] = None,
        decoder_inputs_embeds: Optional[Tensor] = None,
        num_items_in_batch: Union[Tensor, int, None] = None,
        output_routing: bool = False,
        output_logits: bool = True,
    ) -> Union[CapsuleOutput, Tuple[Any, ...]]:
        """Compute the logits of the next tokens, and the loss `(label-smoothed NLL + Σ weight · loss) / words`.

        Args:
            input_ids: sources `[B, I]`, with `</s>` at the end, padded on either side.
            attention_mask: `[B, I]`, 0 at padding of the source; by default it follows from the tokens.
            decoder_input_ids: `[B, T]`, `</s>` and the target; with a cache only the new tokens.
            decoder_attention_mask: `[B, T]`, 0 at padding, also of the tokens in the cache. Padding on the right needs
                none.
            encoder_outputs: what the encoder of this model returned, instead of `input_ids`, also as a tuple. Without
                `attention_mask` its own padding counts.
            cache: of an earlier call, or an `EncoderDecoderCache` of a `DynamicCache(config=model.config)` for each
                attention.
            labels: `[B, T]`, the target with `</s>` at the end, padded on either side with -100 or `<pad>`. Then there
                is no cache. Without `decoder_attention_mask`, `decoder_input_ids` are padding where they are `<pad>`
                beside such padding; -100 beside a word only leaves it out of the loss.
            use_cache: whether the result has a cache for the next call; by default not in training.
            output_attentions, output_hidden_states: by default as the configuration says.
            inputs_embeds: `[B, I, C]`, embeddings of the source as `get_input_embeddings()` gives them, instead of
                `input_ids`.
            decoder_inputs_embeds: `[B, T, C]`, those of the target, instead of `decoder_input_ids`. Without
                `decoder_attention_mask` none is padding.
            num_items_in_batch: what the loss is divided by instead of the number of words in `labels`: the number of
                words in all batches whose gradients are summed. A Trainer counts the labels that are not -100, so there
                -100 must pad them, not `<pad>`.
            output_routing: whether the result has `routing`, of a whole target without a cache.
            output_logits: whether the result has logits where labels are given. Without them the loss needs less
                memory. They are computed anyway where the output layer has hooks or adapters.

        Raises:
            ValueError: no source or no target is given, one is given as tokens and as embeddings, labels or
                `output_routing` are given with a cache, or `encoder_outputs` lack what this model needs.
            TypeError: the cache is no `EncoderDecoderCache` of two dynamic caches of this configuration.
        """
        check_cache(cache)  # before the mask: for a static cache `generate` makes one of another form
        decoder_padding = None if decoder_attention_mask is None else decoder_attention_mask.eq(0)
        if cache is not None and (output_routing or labels is not None):
            raise ValueError("labels and output_routing need the whole target: give no cache")
        if labels is not None:
            if use_cache:
                warn_once("use_cache is False where labels are given")
            # Before the layers, where masks are read too: there a GPU has little to finish first.
            if num_items_in_batch is not None and not is_traced() and labels.eq(self.config.pad_token_id).any():
                warn_once("a Trainer counts <pad> in labels as words, so the loss is too small; pad labels with -100")
            if decoder_input_ids is None and decoder_inputs_embeds is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
            if decoder_input_ids is not None and decoder_padding is None:
                decoder_padding = self._padding_beside(labels, decoder_input_ids)
        with self._recorded_routing() if output_routing else nullcontext() as routing:
            decoded, fields = self._decode(
                input_ids,
                attention_mask,
                decoder_input_ids,
                decoder_padding,
                encoder_outputs,
                cache,
                labels is None and not output_routing and self._caches(use_cache),
                output_attentions,
                output_hidden_states,
                inputs_embeds,
                decoder_inputs_embeds,
            )
        if routing is not None and decoded.routed is not None:
            routing["assignment"] = decoded.routed.assignment
        keeps_logits = output_logits or labels is None or not is_bare(self.decoder.output_projection)
        logits = self.decoder.output_projection(decoded.features) if keeps_logits else None
        if self.training and labels is not None:
            self._warn_of_float16()
        loss = losses = None
        if labels is not None:
            loss, losses = self._loss(decoded, logits, labels, num_items_in_batch)
        elif self.training and self.config.guided_heads != "none":
            # The label smoothing of a Trainer takes the labels away, for instance.
            warn_once("without labels the losses of PAST and FUTURE are not computed; set label_smoothing here")
        return CapsuleOutput(loss=loss, losses=losses, logits=logits, routing=routing, **fields)
