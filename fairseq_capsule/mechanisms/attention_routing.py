"""Routing of attention logits: the capsule-Transformer (Duan et al. 2020)."""

from dataclasses import dataclass
from typing import Any, Mapping

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from capsule_routing import from_options
from fairseq_capsule.mechanisms.base import Mechanism, Place
from fairseq_capsule.options import iterations, layer_set, setting

ENCODER_PARTS = ChoiceEnum(["both", "vertical", "horizontal", "none"])
DECODER_PARTS = ChoiceEnum(["horizontal", "none"])


@dataclass
class AttentionRoutingConfig(FairseqDataclass):
    """Options for routing the logits of self-attention."""

    encoder_routing: ENCODER_PARTS = setting(
        "none", "the routing in the encoder's self-attention (Duan et al., Table 3)"
    )
    decoder_routing: DECODER_PARTS = setting(
        "none", "whether the decoder's self-attention routes (Duan et al., Table 2)"
    )
    encoder_routing_layers: str = setting("all", "encoder layers that route: all, 1-3 or 1,4-6 (Duan et al., Table 4)")
    routing_iterations: int = iterations(3, "routing iterations of the attention logits")


class RoutedAttention(Mechanism):
    """Attention `softmax(mask(E + Ω↑ + Ω↔))`: capsules of the logits `E` are added to the logits (§3.2-3.4)."""

    name = "attention_routing"
    summary = "routes the logits of self-attention to capsules and adds these to the logits (Duan et al. 2020)"
    options = AttentionRoutingConfig
    on = {"encoder_routing": "both", "decoder_routing": "horizontal"}
    iterations = "routing_iterations"

    def check(self, config: Any) -> None:
        layer_set("encoder_routing_layers", config.encoder_routing_layers, config.encoder_layers)

    def attention(self, config: Any, place: Place) -> Mapping[str, nn.Module]:
        if place.kind == "cross":
            return {}
        if place.side == "decoder":
            routing = from_options.decoder_attention_routing(config)
        elif place.layer in layer_set("encoder_routing_layers", config.encoder_routing_layers, config.encoder_layers):
            routing = from_options.encoder_attention_routing(config)
        else:
            routing = None
        return {} if routing is None else {"logits": routing}

    def attached_as(self, part: nn.Module) -> str:
        return "routing"


ATTENTION_ROUTING = RoutedAttention()
