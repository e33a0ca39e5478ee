"""`capsule_transformer`: fairseq's Transformer with the orthogonal parts of which each paper's system is a preset."""

import re
from typing import Dict, List

from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.beams import KnowsBeams, project_source_once
from fairseq_capsule.models.capsule_model import CapsuleModel
from fairseq_capsule.models.capsule_transformer_config import CapsuleTransformerConfig, presets
from fairseq_capsule.models.flat_config import register_presets, validated
from fairseq_capsule.models.global_representation import build_gate, build_global_representation
from fairseq_capsule.models.past_future import build_past_future
from fairseq_capsule.models.routing_attention import RoutingSelfAttention
from fairseq_capsule.modules import AttentionRouting


def route_self_attention(layer: nn.Module, routing: AttentionRouting) -> None:
    """Give a fairseq Transformer layer a self-attention whose logits `routing` routes."""
    if not isinstance(layer, (TransformerEncoderLayerBase, TransformerDecoderLayerBase)):
        raise UserError(
            f"attention routing cannot enter a layer wrapped as {type(layer).__name__}; use another --ddp-backend"
        )
    plain = layer.self_attn
    layer.self_attn = RoutingSelfAttention(
        plain.embed_dim,
        plain.num_heads,
        routing,
        dropout=plain.dropout_module.p,
        q_noise=layer.quant_noise,
        qn_block_size=layer.quant_noise_block_size,
    )


def layer_outputs(encoded: Dict[str, List[Tensor]]) -> List[Tensor]:
    """Every layer's output `[B, L, C]`, of what a Transformer's encoder gives with `return_all_hiddens`."""
    # The first of the states is the embeddings; the last layer's output is what the decoder gets of it.
    return [state.transpose(0, 1) for state in (*encoded["encoder_states"][1:-1], encoded["encoder_out"][0])]


class CapsuleTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder; its layers may route their self-attention, its output may hold a vector for the sentence."""

    def __init__(self, cfg, dictionary, embed_tokens, return_fc=False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.dropout_module.module_name = "TransformerEncoder"  # the name that --retain-dropout-modules knows
        self.global_representation = build_global_representation(cfg)
        parts = cfg.encoder_routing
        if parts == "none":
            return
        for index in cfg.routing_layers:
            routing = AttentionRouting(
                cfg.encoder.attention_heads,
                vertical=parts in ("both", "vertical"),
                horizontal=parts in ("both", "horizontal"),
                iterations=cfg.routing_iterations,
            )
            route_self_attention(self.layers[index], routing)

    def forward(self, src_tokens, src_lengths=None, return_all_hiddens=False, token_embeddings=None):
        """As fairseq's; with a vector for the sentence, `global_representation` is a list of that vector `[B, C]`."""
        if self.global_representation is None:
            return super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)
        encoded = super().forward(src_tokens, src_lengths, True, token_embeddings)
        vector = self.global_representation(layer_outputs(encoded), encoded["encoder_padding_mask"][0])
        if not return_all_hiddens:
            encoded["encoder_states"] = []
        return {**encoded, "global_representation": [vector]}

    def reorder_encoder_out(self, encoder_out, new_order):
        """As fairseq's."""
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        for vector in encoder_out.get("global_representation", []):
            reordered["global_representation"] = [vector.index_select(0, new_order)]
        return reordered


class CapsuleTransformerDecoder(KnowsBeams, TransformerDecoderBase):
    """fairseq's decoder; its layers may route their self-attention under the causal mask, its output may take in the
    vector of the source sentence, and then PAST and FUTURE."""

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn=False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.dropout_module.module_name = "TransformerDecoder"
        self.context_gate = build_gate(cfg, self.output_embed_dim)
        self.past_future = build_past_future(cfg, cfg.encoder.embed_dim, self.output_embed_dim)
        if cfg.decoder_routing == "none":
            return
        for index in range(len(self.layers)):  # a loop over layers would drop some of them under --decoder-layerdrop
            routing = AttentionRouting(
                cfg.decoder.attention_heads, vertical=False, iterations=cfg.routing_iterations, causal=True
            )
            route_self_attention(self.layers[index], routing)

    def extract_features(self, prev_output_tokens, encoder_out, incremental_state=None, *args, **kwargs):
        """As fairseq's; with PAST and FUTURE, `extra["past_future"]` is a `PastFutureOutput`."""
        if incremental_state == {}:  # the first step
            self._project_source_once(encoder_out, incremental_state)
        features, extra = super().extract_features(prev_output_tokens, encoder_out, incremental_state, *args, **kwargs)
        if self.context_gate is not None:
            features = self.context_gate(features, encoder_out["global_representation"][0])
        if self.past_future is None:
            return features, extra
        source, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        features, extra["past_future"] = self.past_future(features, source, padding_mask, incremental_state)
        return features, extra

    def _project_source_once(self, encoder_out, incremental_state):
        source, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        beams = self.beams_of(source)
        if beams > 1:
            project_source_once(self.layers, source, padding_mask, beams, incremental_state)

    @property
    def output_embeddings(self):
        """`E` `[V, C]`, which the bag-of-words loss shares."""
        return self.output_projection.weight


class CapsuleTransformerModel(CapsuleModel, TransformerModelBase):
    """The capsule-Transformer (Duan et al. 2020); with every option off, fairseq's Transformer, number for number."""

    # TransformerModelBase would offer the options of its own nested config.
    add_args = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model of a preset's config.

        Raises:
            UserError: an option has a value that is not allowed.
        """
        config = validated(cfg, CapsuleTransformerConfig)
        nested = config.nested()
        nested.routing_layers = config.routing_layers()
        return super().build_model(nested, task)

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """As fairseq's; layers that are not to be kept are left out of a checkpoint that has them.

        fairseq prunes the other side's layers too where one side's are named, and what is pruned already again.
        """
        for side, part in (("encoder", self.encoder), ("decoder", self.decoder)):
            trained = {name.split(".")[2] for name in state_dict if name.startswith(f"{side}.layers.")}
            text = getattr(self.cfg, side).layers_to_keep
            if text and len(trained) > len(part.layers):
                kept = {number: place for place, number in enumerate(sorted(map(int, text.split(","))))}
                state_dict = _of_kept_layers(state_dict, side, kept)
        return super().load_state_dict(state_dict, strict)

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return CapsuleTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        return CapsuleTransformerDecoder(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)


def _of_kept_layers(state_dict: Dict[str, Tensor], side: str, kept: Dict[int, int]) -> Dict[str, Tensor]:
    """A checkpoint without one side's other layers, and those that are kept under their new numbers."""
    of_a_layer = re.compile(rf"({side}\.(?:layers|global_representation\.poolings)\.)(\d+)(\..*)")
    pruned = {}
    for name, value in state_dict.items():
        layer = of_a_layer.fullmatch(name)
        if not layer:
            pruned[name] = value
        elif int(layer[2]) in kept:
            pruned[f"{layer[1]}{kept[int(layer[2])]}{layer[3]}"] = value
    return pruned


register_presets(CapsuleTransformerModel, presets())
