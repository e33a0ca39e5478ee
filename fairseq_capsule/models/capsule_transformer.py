"""`capsule_transformer`: fairseq's Transformer with any of the mechanisms. The system of each paper is a preset."""

import re
from typing import Any, Dict, Set, Tuple

import torch
from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from torch import Tensor

from fairseq_capsule.models.beams import KnowsBeams, project_source_once, sentences_of, with_sentences
from fairseq_capsule.models.capsule_model import CapsuleModel
from fairseq_capsule.models.capsule_transformer_config import CapsuleTransformerConfig, presets
from fairseq_capsule.models.mechanism import EncodedSource, active_mechanisms, add_parts, decode_with
from fairseq_capsule.models.mechanisms import ON_TRANSFORMERS
from fairseq_capsule.models.options import validated
from fairseq_capsule.models.outputs import layer_outputs
from fairseq_capsule.models.presets import register_presets


class CapsuleTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder with the encoder modules of the mechanisms that its config turns on."""

    def __init__(self, cfg, dictionary, embed_tokens, return_fc=False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.dropout_module.module_name = "TransformerEncoder"  # the name that --retain-dropout-modules knows
        add_parts(self, active_mechanisms(cfg), lambda mechanism: mechanism.build_encoder(self, cfg))

    def forward(self, src_tokens, src_lengths=None, return_all_hiddens=False, token_embeddings=None):
        """Encode as fairseq does. The output also has `[tensor]` from `encode` of each mechanism, under its name."""
        encoding = [mechanism for mechanism in self.mechanisms if mechanism.encodes]
        if not encoding:
            return super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)
        encoded = super().forward(src_tokens, src_lengths, True, token_embeddings)
        layers, padding_mask = layer_outputs(encoded), encoded["encoder_padding_mask"][0]
        vectors = {each.name: [each.encode(self, layers, padding_mask)] for each in encoding}
        if not return_all_hiddens:
            encoded["encoder_states"] = []
        return {**encoded, **vectors}

    def reorder_encoder_out(self, encoder_out, new_order):
        """Reorder the batch as fairseq does, with the tensors of the mechanisms.

        Most steps of beam search only move hypotheses within their sentences. Then nothing is copied, and the result
        is `encoder_out` itself. A tensor of a reordered output must be replaced, not changed in place.
        """
        sentences = sentences_of(encoder_out, new_order.device)
        reordered_sentences = sentences[new_order]
        if torch.equal(sentences, reordered_sentences):
            return encoder_out
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        for mechanism in self.mechanisms:
            if mechanism.encodes:
                reordered[mechanism.name] = [part.index_select(0, new_order) for part in encoder_out[mechanism.name]]
        return with_sentences(reordered, reordered_sentences)


class CapsuleTransformerDecoder(KnowsBeams, TransformerDecoderBase):
    """fairseq's decoder with the decoder modules of the mechanisms that its config turns on."""

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn=False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.dropout_module.module_name = "TransformerDecoder"
        sizes = cfg.encoder.embed_dim, self.output_embed_dim
        add_parts(self, active_mechanisms(cfg), lambda mechanism: mechanism.build_decoder(self, cfg, *sizes))

    def extract_features(self, prev_output_tokens, encoder_out, incremental_state=None, *args, **kwargs):
        """Decode as fairseq does, then apply the mechanisms. `extra` has their outputs under their names."""
        attended = self._attended_source(encoder_out, incremental_state)
        features, extra = super().extract_features(prev_output_tokens, attended, incremental_state, *args, **kwargs)
        if not self.mechanisms:
            return features, extra
        states, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        vectors = {each.name: encoder_out[each.name][0] for each in self.mechanisms if each.encodes}
        features, outputs = decode_with(
            self.mechanisms, self, features, EncodedSource(states, padding_mask, vectors), incremental_state
        )
        return features, {**extra, **outputs}

    def _attended_source(self, encoder_out, incremental_state):
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
        attended = encoder_out
        if not padding_mask.any():
            self.set_incremental_state(incremental_state, "source", {"padding_mask": None})
            attended, padding_mask = unpadded, None
        beams = self.beams_of(source)
        if beams > 1:
            project_source_once(self.layers, source, padding_mask, beams, incremental_state)
        return attended

    @property
    def output_embeddings(self):
        """`E` `[V, C]`, which the bag-of-words loss shares."""
        return self.output_projection.weight


@register_model("capsule_transformer", dataclass=CapsuleTransformerConfig)
class CapsuleTransformerModel(CapsuleModel, TransformerModelBase):
    """The capsule-Transformer (Duan et al. 2020). With all mechanisms off it is identical to fairseq's Transformer."""

    config_type = CapsuleTransformerConfig

    # The method of TransformerModelBase adds the options of its own nested config.
    add_args: Any = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model of a preset's config.

        Raises:
            UserError: an option has a value that is not allowed.
        """
        return super().build_model(validated(cfg, cls.config_type).nested(), task)

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """Load parameters as fairseq does, but prune the layers of the checkpoint here.

        fairseq would also prune the other side if only one side is named, and would prune a pruned checkpoint again.
        """
        for side, part in (("encoder", self.encoder), ("decoder", self.decoder)):
            trained = _numbers(state_dict, f"{side}.layers.")
            # A checkpoint with another number of layers is left as it is, and refused.
            if len(trained) == self.cfg.trained_layers[side] > len(part.layers):
                names = ("layers", *(name for mechanism in part.mechanisms for name in mechanism.layer_lists))
                # A list with fewer modules belongs to the last layer, or the last one that is kept.
                lists = tuple(name for name in names if _numbers(state_dict, f"{side}.{name}.") == trained)
                kept = {layer: place for place, layer in enumerate(self.cfg.kept_layers[side])}
                state_dict = _of_kept_layers(state_dict, side, lists, kept)
        return super().load_state_dict(state_dict, strict)

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return CapsuleTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        return CapsuleTransformerDecoder(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)


def _numbers(state_dict: Dict[str, Tensor], start: str) -> Set[str]:
    """Return the numbers of the modules of a list, whose parameters' names begin with `start`."""
    return {name[len(start) :].partition(".")[0] for name in state_dict if name.startswith(start)}


def _of_kept_layers(
    state_dict: Dict[str, Tensor], side: str, lists: Tuple[str, ...], kept: Dict[int, int]
) -> Dict[str, Tensor]:
    """Return a checkpoint with only the kept layers of one side, renumbered."""
    of_a_layer = re.compile(rf"({side}\.(?:{'|'.join(map(re.escape, lists))})\.)(\d+)(\..*)")
    pruned = {}
    for name, value in state_dict.items():
        layer = of_a_layer.fullmatch(name)
        if not layer:
            pruned[name] = value
        elif int(layer[2]) in kept:
            pruned[f"{layer[1]}{kept[int(layer[2])]}{layer[3]}"] = value
    return pruned


for _mechanism in ON_TRANSFORMERS:
    register_presets(CapsuleTransformerModel, presets(_mechanism))
