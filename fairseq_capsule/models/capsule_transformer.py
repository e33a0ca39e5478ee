"""`capsule_transformer`: fairseq's Transformer with the orthogonal parts of which each paper's system is a preset."""

from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.capsule_transformer_config import CapsuleTransformerConfig, presets
from fairseq_capsule.models.flat_config import parse_layers, register_presets, validated
from fairseq_capsule.models.past_future import TakesBeamSize, build_past_future
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


class CapsuleTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder; the chosen layers route their self-attention."""

    def __init__(self, cfg, dictionary, embed_tokens, return_fc=False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.dropout_module.module_name = "TransformerEncoder"  # the name that --retain-dropout-modules knows
        parts = cfg.encoder_routing
        if parts == "none":
            return
        for number in parse_layers("encoder_routing_layers", cfg.encoder_routing_layers, cfg.encoder.layers):
            routing = AttentionRouting(
                cfg.encoder.attention_heads,
                vertical=parts in ("both", "vertical"),
                horizontal=parts in ("both", "horizontal"),
                iterations=cfg.routing_iterations,
            )
            route_self_attention(self.layers[number - 1], routing)


class CapsuleTransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder; its layers may route their self-attention under the causal mask, its output may take PAST and
    FUTURE in."""

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn=False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.dropout_module.module_name = "TransformerDecoder"
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
        features, extra = super().extract_features(prev_output_tokens, encoder_out, incremental_state, *args, **kwargs)
        if self.past_future is None:
            return features, extra
        source, padding_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        features, extra["past_future"] = self.past_future(features, source, padding_mask, incremental_state)
        return features, extra

    @property
    def output_embeddings(self):
        """`E` `[V, C]`, which the bag-of-words loss shares."""
        return self.output_projection.weight


class CapsuleTransformerModel(TakesBeamSize, TransformerModelBase):
    """The capsule-Transformer (Duan et al. 2020); with every option off, fairseq's Transformer, number for number."""

    # TransformerModelBase would offer the options of its own nested config.
    add_args = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model of a preset's config.

        Raises:
            UserError: an option has a value that is not allowed.
        """
        return super().build_model(validated(cfg, CapsuleTransformerConfig).nested(), task)

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return CapsuleTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        return CapsuleTransformerDecoder(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """As fairseq's, which would report another dictionary's embeddings as tensors that do not fit.

        Raises:
            UserError: the checkpoint was trained with a dictionary of another size.
        """
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name in state_dict and len(state_dict[name]) != part.embed_tokens.num_embeddings:
                raise UserError(
                    f"the checkpoint's {side} dictionary has {len(state_dict[name])} entries, the data's "
                    f"{part.embed_tokens.num_embeddings}: binarise the data with the dictionary of the checkpoint's run"
                )
        return super().load_state_dict(state_dict, strict, model_cfg, args)


register_presets(CapsuleTransformerModel, presets())
