"""`capsule_transformer`: fairseq's Transformer with the orthogonal parts of which each paper's system is a preset."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.flat_config import FlatTransformerConfig, option, parse_layers, validated
from fairseq_capsule.models.routing_attention import RoutingSelfAttention
from fairseq_capsule.modules import AttentionRouting

ENCODER_ROUTING = ChoiceEnum(["both", "vertical", "horizontal", "none"])
DECODER_ROUTING = ChoiceEnum(["horizontal", "none"])


@dataclass
class CapsuleTransformerConfig(FlatTransformerConfig):
    """The base preset. A wrong value is refused when the model is built, with the option's name."""

    encoder_routing: ENCODER_ROUTING = field(
        default="both", metadata={"help": "which routing parts the encoder's self-attention has (Duan et al., Table 3)"}
    )
    decoder_routing: DECODER_ROUTING = field(
        default="horizontal", metadata={"help": "whether the decoder's self-attention routes (Duan et al., Table 2)"}
    )
    encoder_routing_layers: str = field(
        default="all", metadata={"help": "encoder layers that route: all, 1-3 or 1,4-6 (Duan et al., Table 4)"}
    )
    routing_iterations: int = field(default=3, metadata={"help": "routing iterations of an attention's logits"})

    def __post_init__(self):
        if self.routing_iterations < 1:
            raise UserError(f"--routing-iterations must be at least 1, not {self.routing_iterations}")
        parse_layers("encoder_routing_layers", self.encoder_routing_layers, self.encoder_layers)
        for side, heads, embed_dim in (
            ("encoder", self.encoder_attention_heads, self.encoder_embed_dim),
            ("decoder", self.decoder_attention_heads, self.decoder_embed_dim),
        ):
            if heads < 1 or embed_dim % heads:
                raise UserError(f"--{side}-attention-heads {heads} must divide --{side}-embed-dim {embed_dim}")
        for name, routing in (("encoder", self.encoder_routing), ("decoder", self.decoder_routing)):
            if routing != "none" and getattr(self, name + "_xformers_att_config"):
                raise UserError(f"{option(name + '_xformers_att_config')} needs --{name}-routing none")
        if self.cross_self_attention and self.decoder_routing != "none":
            raise UserError("--cross-self-attention needs --decoder-routing none: its keys are not its queries")


@dataclass
class CapsuleTransformerBigConfig(CapsuleTransformerConfig):
    encoder_embed_dim: Optional[int] = 1024
    encoder_ffn_embed_dim: int = 4096
    encoder_attention_heads: int = 16
    decoder_embed_dim: Optional[int] = 1024
    decoder_ffn_embed_dim: int = 4096
    decoder_attention_heads: int = 16
    dropout: float = 0.3


@dataclass
class CapsuleTransformerTinyConfig(CapsuleTransformerConfig):
    encoder_embed_dim: Optional[int] = 128
    encoder_ffn_embed_dim: int = 256
    encoder_layers: int = 4
    encoder_attention_heads: int = 4
    decoder_embed_dim: Optional[int] = 128
    decoder_ffn_embed_dim: int = 256
    decoder_layers: int = 4
    decoder_attention_heads: int = 4


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
    """fairseq's decoder; its layers route their self-attention under the causal mask."""

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn=False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.dropout_module.module_name = "TransformerDecoder"
        if cfg.decoder_routing == "none":
            return
        for index in range(len(self.layers)):  # a loop over layers would drop some of them under --decoder-layerdrop
            routing = AttentionRouting(
                cfg.decoder.attention_heads, vertical=False, iterations=cfg.routing_iterations, causal=True
            )
            route_self_attention(self.layers[index], routing)


class CapsuleTransformerModel(TransformerModelBase):
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


for _name, _preset in {
    "capsule_transformer": CapsuleTransformerConfig,
    "capsule_transformer_base": CapsuleTransformerConfig,
    "capsule_transformer_big": CapsuleTransformerBigConfig,
    "capsule_transformer_tiny": CapsuleTransformerTinyConfig,
}.items():
    register_model(_name, dataclass=_preset)(CapsuleTransformerModel)
