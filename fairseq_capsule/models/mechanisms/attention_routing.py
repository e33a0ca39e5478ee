"""Routing of attention logits: the capsule-Transformer (Duan et al. 2020)."""

from dataclasses import dataclass, field
from typing import Any, Union

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqDecoder, FairseqEncoder
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.mechanism import Mechanism, register_mechanism
from fairseq_capsule.models.options import layer_set, option
from fairseq_capsule.models.routing_attention import RoutingSelfAttention
from fairseq_capsule.modules import AttentionRouting

ENCODER_ROUTING = ChoiceEnum(["both", "vertical", "horizontal", "none"])
DECODER_ROUTING = ChoiceEnum(["horizontal", "none"])


@dataclass
class AttentionRoutingConfig(FairseqDataclass):
    """Options for routing the logits of self-attention."""

    encoder_routing: ENCODER_ROUTING = field(
        default="both", metadata={"help": "the routing in the encoder's self-attention (Duan et al., Table 3)"}
    )
    decoder_routing: DECODER_ROUTING = field(
        default="horizontal", metadata={"help": "whether the decoder's self-attention routes (Duan et al., Table 2)"}
    )
    encoder_routing_layers: str = field(
        default="all", metadata={"help": "encoder layers that route: all, 1-3 or 1,4-6 (Duan et al., Table 4)"}
    )
    routing_iterations: int = field(default=3, metadata={"help": "routing iterations of the attention logits"})


class RoutedAttention(Mechanism):
    """Attention `softmax(mask(E + Ω↑ + Ω↔))`: capsules of the logits `E` are added to the logits (§3.2-3.4)."""

    name = "attention_routing"
    summary = "routes the logits of self-attention to capsules and adds these to the logits (Duan et al. 2020)"
    options = AttentionRoutingConfig
    off = {"encoder_routing": "none", "decoder_routing": "none"}
    preset = "capsule"
    on = {"encoder_routing": "both", "decoder_routing": "horizontal"}
    iterations = "routing_iterations"

    def check(self, config: Any) -> None:
        layer_set("encoder_routing_layers", config.encoder_routing_layers, config.encoder_layers)
        for name, routing in (("encoder", config.encoder_routing), ("decoder", config.decoder_routing)):
            if routing != "none" and getattr(config, name + "_xformers_att_config"):
                raise UserError(f"{option(name + '_xformers_att_config')} needs --{name}-routing none")
        if config.cross_self_attention and config.decoder_routing != "none":
            raise UserError("--cross-self-attention needs --decoder-routing none, because its keys are not its queries")
        if config.base_layers and config.decoder_routing != "none":
            raise UserError("--base-layers needs --decoder-routing none, because a BASE layer has no attention")

    def build_encoder(self, encoder: FairseqEncoder, config: Any) -> None:
        parts = config.encoder_routing
        if parts == "none":
            return
        kept = config.kept_layers["encoder"]
        routed = layer_set("encoder_routing_layers", config.encoder_routing_layers, config.trained_layers["encoder"])
        for index in (place for place, layer in enumerate(kept) if layer + 1 in routed):
            routing = AttentionRouting(
                config.encoder.attention_heads,
                vertical=parts in ("both", "vertical"),
                horizontal=parts in ("both", "horizontal"),
                iterations=config.routing_iterations,
            )
            route_self_attention(encoder.layers[index], routing)

    def build_decoder(self, decoder: FairseqDecoder, config: Any, source_dim: int, state_dim: int) -> None:
        if config.decoder_routing == "none":
            return
        # By index, because iterating over the list drops layers with --decoder-layerdrop.
        for index in range(len(decoder.layers)):
            routing = AttentionRouting(
                config.decoder.attention_heads, vertical=False, iterations=config.routing_iterations, causal=True
            )
            route_self_attention(decoder.layers[index], routing)
            # In evaluation all layers of fairseq return their cross-attention, and the decoder discards it. The layer
            # that provides the alignment still gets an explicit request for it.
            decoder.layers[index].need_attn = False


def route_self_attention(
    layer: Union[TransformerEncoderLayerBase, TransformerDecoderLayerBase], routing: AttentionRouting
) -> None:
    """Replace the self-attention of a fairseq Transformer layer by one that routes its logits with `routing`.

    Raises:
        UserError: the layer is wrapped, so its attention cannot be replaced.
    """
    if not isinstance(layer, (TransformerEncoderLayerBase, TransformerDecoderLayerBase)):
        raise UserError(
            f"attention routing does not work in a layer wrapped as {type(layer).__name__}; use another --ddp-backend"
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


ATTENTION_ROUTING = register_mechanism(RoutedAttention())
