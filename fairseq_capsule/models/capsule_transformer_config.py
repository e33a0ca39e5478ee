"""The options of `capsule_transformer` and its presets: every mechanism in every size."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Type

from fairseq.dataclass import ChoiceEnum

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.flat_config import FlatTransformerConfig, option, parse_layers, preset
from fairseq_capsule.models.global_representation import GlobalRepresentationConfig, check_global_representation
from fairseq_capsule.models.past_future import PastFutureConfig, check_past_future

ENCODER_ROUTING = ChoiceEnum(["both", "vertical", "horizontal", "none"])
DECODER_ROUTING = ChoiceEnum(["horizontal", "none"])


@dataclass
class CapsuleTransformerConfig(GlobalRepresentationConfig, PastFutureConfig, FlatTransformerConfig):
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
        self.routing_layers()
        self.kept_layers("decoder")
        for side, heads, embed_dim in (
            ("encoder", self.encoder_attention_heads, self.encoder_embed_dim),
            ("decoder", self.decoder_attention_heads, self.decoder_embed_dim),
        ):
            if embed_dim % heads:
                raise UserError(f"--{side}-attention-heads {heads} must divide --{side}-embed-dim {embed_dim}")
        for name, routing in (("encoder", self.encoder_routing), ("decoder", self.decoder_routing)):
            if routing != "none" and getattr(self, name + "_xformers_att_config"):
                raise UserError(f"{option(name + '_xformers_att_config')} needs --{name}-routing none")
        if self.cross_self_attention and self.decoder_routing != "none":
            raise UserError("--cross-self-attention needs --decoder-routing none: its keys are not its queries")
        check_past_future(self)
        check_global_representation(self)


    def routing_layers(self) -> List[int]:
        """The encoder layers that route, counted from 0 among those that are kept."""
        routing = parse_layers("encoder_routing_layers", self.encoder_routing_layers, self.encoder_layers)
        return [place for place, layer in enumerate(self.kept_layers("encoder")) if layer + 1 in routing]


def _dimensions(**sizes: int) -> Dict[str, int]:
    return {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}


SIZES: Dict[str, Dict[str, Any]] = {
    "base": {},
    "big": {**_dimensions(embed_dim=1024, ffn_embed_dim=4096, attention_heads=16), "dropout": 0.3},
    "tiny": _dimensions(embed_dim=128, ffn_embed_dim=256, attention_heads=4, layers=4),
}

ATTENTION_ROUTING_OFF = {"encoder_routing": "none", "decoder_routing": "none"}

MECHANISMS: Dict[str, Dict[str, Any]] = {
    "capsule": {},
    "gdr": {**ATTENTION_ROUTING_OFF, "past_future": "gdr", "guided_heads": "both"},
    "gret": {**ATTENTION_ROUTING_OFF, "global_representation": "capsule"},
}


def presets() -> Dict[str, Type[CapsuleTransformerConfig]]:
    """The config of every architecture, by its name."""
    named = {
        f"{mechanism}_transformer_{size}": preset(CapsuleTransformerConfig, **defaults, **sizes)
        for mechanism, defaults in MECHANISMS.items()
        for size, sizes in SIZES.items()
    }
    return {"capsule_transformer": CapsuleTransformerConfig, **named}
