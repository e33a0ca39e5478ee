"""`capsule_transformer`: fairseq's Transformer with any of the mechanisms. The system of each paper is a preset."""

import re
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.modules import compile_routing
from fairseq_capsule.mechanisms import Place, Sizes, Source, Target, registry
from fairseq_capsule.mechanisms.attention_routing import AttentionRoutingConfig
from fairseq_capsule.mechanisms.base import IncrementalState
from fairseq_capsule.mechanisms.global_representation import GlobalRepresentationConfig
from fairseq_capsule.mechanisms.past_future import PastFutureConfig
from fairseq_capsule.mechanisms.registry import registered
from fairseq_capsule.mechanisms.selective_attention import SelectiveAttentionConfig
from fairseq_capsule.models.attention import ATTRIBUTES, change_attention
from fairseq_capsule.models.base import CapsuleModel
from fairseq_capsule.models.beams import project_source_once, sentences_of, with_sentences
from fairseq_capsule.models.config import FlatTransformerConfig
from fairseq_capsule.models.outputs import encoder_states
from fairseq_capsule.models.parts import RunsParts, attach, run_encoder_parts
from fairseq_capsule.options import compile_option


@dataclass
class CapsuleTransformerConfig(
    GlobalRepresentationConfig,
    PastFutureConfig,
    SelectiveAttentionConfig,
    AttentionRoutingConfig,
    FlatTransformerConfig,
):
    """All options, with all mechanisms off. Building the model raises a UserError that names a wrong option."""

    compile_routing: bool = compile_option()

    def __post_init__(self) -> None:
        config = self.with_decoder_sizes()
        for side in ("encoder", "decoder"):
            config.kept_layers(side)
        if self.merge_src_tgt_embed and not self.share_all_embeddings:  # beside this one fairseq ignores it
            problem = "it changes the dictionaries, so no data fits the checkpoints"
            remedy = "leave it out, and give --share-all-embeddings with a joined dictionary"
            raise UserError(f"--merge-src-tgt-embed: {problem}; {remedy}")
        registry.check_mechanisms(config)


def _build_parts(side: Any, name: str, cfg: Any) -> None:
    """Let the mechanisms of a nested config change an encoder or decoder, in order."""
    side.mechanism_parts = {}
    dropping = "layerdrop" if getattr(cfg, name).layerdrop else ""
    if len(cfg.kept_layers[name]) < cfg.trained_layers[name]:
        dropping = f"--{name}-layers-to-keep"
    sizes = Sizes(cfg.encoder.embed_dim, cfg.decoder.output_dim, cfg.encoder.layers, cfg.decoder.layers)
    for mechanism in registry.active_mechanisms(cfg):
        part = getattr(mechanism, name)(cfg.flat, sizes)
        attach(side, name, mechanism, part, dropping)
        for place, number in enumerate(cfg.kept_layers[name]):
            # By index, because iterating over the list drops layers with --decoder-layerdrop.
            layer = side.layers[place]
            for kind in (kind for kind, attribute in ATTRIBUTES.items() if getattr(layer, attribute, None) is not None):
                parts = mechanism.attention(cfg.flat, Place(name, kind, number + 1))
                if not parts:
                    continue
                if getattr(cfg, "base_layers", 0) and name == "decoder":
                    raise UserError(f"--base-layers does not work with {mechanism.name}; turn one of them off")
                change_attention(layer, kind, mechanism.name, parts)
                if name == "decoder":
                    # In evaluation all layers return their cross-attention, and the decoder discards it. The layer for
                    # the alignment still gets an explicit request.
                    layer.need_attn = False


class CapsuleTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder with the encoder parts of the mechanisms that its config turns on."""

    def __init__(self, cfg: Any, *args: Any, **kwargs: Any):
        super().__init__(cfg, *args, **kwargs)
        self.dropout_module.module_name = "TransformerEncoder"  # the name that --retain-dropout-modules knows
        _build_parts(self, "encoder", cfg)

    def forward(
        self, src_tokens: Any, src_lengths: Any = None, return_all_hiddens: bool = False, token_embeddings: Any = None
    ) -> Dict[str, Any]:
        """Encode as fairseq does. The output also has `[vector]` for each vector of a mechanism, under its name."""
        if not self.mechanism_parts:
            return super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)
        reads = any("encoder" in registered(name).reads_layers for name in self.mechanism_parts.values())
        encoded = super().forward(src_tokens, src_lengths, return_all_hiddens or reads, token_embeddings)
        states, padding_mask = encoder_states(encoded)
        # The first of fairseq's states is the embeddings, the last one is before the final norm.
        layers = (*(state.transpose(0, 1) for state in encoded["encoder_states"][1:-1]), states) if reads else ()
        source = run_encoder_parts(self, Source(states, padding_mask, layers))
        if source.states.shape[:2] != states.shape[:2]:
            changed = f"made {source.states.size(1)} encoder states of {states.size(1)} source words"
            names = " or ".join(self.mechanism_parts.values())
            raise UserError(f"{names} {changed}; a mechanism must keep one state for each word, in their order")
        if source.states is not states or source.padding_mask is not padding_mask:
            encoded["encoder_out"] = [source.states.transpose(0, 1)]
            encoded["encoder_padding_mask"] = [source.padding_mask]
        if not return_all_hiddens:
            encoded["encoder_states"] = []
        return {**encoded, **{name: [vector] for name, vector in source.vectors.items()}}

    def reorder_encoder_out(self, encoder_out: Dict[str, Any], new_order: Tensor) -> Dict[str, Any]:
        """Reorder the batch as fairseq does, with the tensors of the mechanisms.

        Most steps of beam search only move hypotheses within their sentences. Then nothing is copied, and the result is
        `encoder_out` itself. A tensor of a reordered output must be replaced, not changed in place.
        """
        sentences = sentences_of(encoder_out, new_order.device)
        reordered_sentences = sentences[new_order]
        if torch.equal(sentences, reordered_sentences):
            return encoder_out
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        for name in encoder_out.keys() & set(self.mechanism_parts.values()):
            reordered[name] = [vector.index_select(0, new_order) for vector in encoder_out[name]]
        return with_sentences(reordered, reordered_sentences)


class CapsuleTransformerDecoder(RunsParts, TransformerDecoderBase):
    """fairseq's decoder with the decoder parts of the mechanisms that its config turns on."""

    def __init__(self, cfg: Any, *args: Any, **kwargs: Any):
        super().__init__(cfg, *args, **kwargs)
        self.dropout_module.module_name = "TransformerDecoder"
        _build_parts(self, "decoder", cfg)

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Any, incremental_state: Any = None, *args: Any, **kwargs: Any
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Decode as fairseq does, then apply the mechanisms. `extra` has their outputs under their names."""
        attended = self._attended_source(encoder_out, incremental_state)
        features, extra = super().extract_features(prev_output_tokens, attended, incremental_state, *args, **kwargs)
        if not self.mechanism_parts:
            return features, extra
        names = [mechanism.name for mechanism in registry.mechanisms() if mechanism.name in encoder_out]
        source = Source(*encoder_states(encoder_out), vectors={name: encoder_out[name][0] for name in names})
        layers = (*(state.transpose(0, 1) for state in extra["inner_states"][1:-1]), features)
        target = self.run_parts(Target(features, layers, incremental_state=incremental_state), source)
        return target.states, {**extra, **target.outputs}

    def _attended_source(self, encoder_out: Any, incremental_state: Optional[IncrementalState]) -> Any:
        """Return the encoder output for fairseq's attentions. While decoding, it has no mask if no source is padded.

        The first step also projects the source, once for all beams of a sentence.
        """
        if incremental_state is None:
            return encoder_out
        unpadded = {**encoder_out, "encoder_padding_mask": []}
        if incremental_state:
            kept = self.get_incremental_state(incremental_state, "source")
            return encoder_out if kept is None else unpadded
        source, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        padded = bool(padding_mask.any())
        if not padded:
            self.set_incremental_state(incremental_state, "source", {"padding_mask": None})
        beams = self.beams_of(source.transpose(0, 1))
        if beams > 1:
            project_source_once(self.layers, source, padding_mask if padded else None, beams, incremental_state)
        return encoder_out if padded else unpadded

    @property
    def output_embeddings(self) -> Tensor:
        """`E` `[V, C]`, which the bag-of-words loss shares."""
        return self.output_projection.weight


class CapsuleTransformerModel(CapsuleModel, TransformerModelBase):
    """fairseq's Transformer with mechanisms. With all of them off it is identical to fairseq's."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """Build the model of a preset's config. Raises a UserError if an option has a value that is not allowed."""
        config = cls.checked(cfg)
        model = super().build_model(config.nested(), task)
        if config.compile_routing:
            compile_routing(model)
        return model

    def load_state_dict(
        self, state_dict: Dict[str, Any], strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        """Load parameters as fairseq does, but prune the layers of the checkpoint here.

        fairseq would also prune the other side if only one side is named, and would prune a pruned checkpoint again.
        """
        for side in ("encoder", "decoder"):
            state_dict = _pruned(state_dict, side, getattr(self, side), self.cfg)
        return super().load_state_dict(state_dict, strict)

    @classmethod
    def build_encoder(cls, cfg: Any, src_dict: Any, embed_tokens: Any) -> CapsuleTransformerEncoder:
        return CapsuleTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg: Any, tgt_dict: Any, embed_tokens: Any) -> CapsuleTransformerDecoder:
        return CapsuleTransformerDecoder(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)


def _pruned(state_dict: Dict[str, Tensor], name: str, side: Any, cfg: Any) -> Dict[str, Tensor]:
    """Return a checkpoint with only the kept layers of one side, renumbered; with another number of layers, itself."""
    of_a_layer = re.compile(rf"{name}\.layers\.(\d+)(\..*)")
    places = {key: match.groups() for key in state_dict if (match := of_a_layer.fullmatch(key))}
    trained = len({layer for layer, _ in places.values()})
    if not trained == cfg.trained_layers[name] > len(side.layers):
        return state_dict
    kept = {str(layer): place for place, layer in enumerate(cfg.kept_layers[name])}
    pruned = {}
    for key, value in state_dict.items():
        layer, rest = places.get(key, ("", ""))
        if not layer:
            pruned[key] = value
        elif layer in kept:
            pruned[f"{name}.layers.{kept[layer]}{rest}"] = value
    return pruned
