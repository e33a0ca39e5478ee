"""The options of `capsule_transformer` and its presets: each mechanism in each size."""

from dataclasses import make_dataclass
from typing import Any, Dict

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.flat_config import FlatTransformerConfig
from fairseq_capsule.models.mechanism import Mechanism, check_mechanisms, options_off
from fairseq_capsule.models.mechanisms import ON_TRANSFORMERS
from fairseq_capsule.models.presets import Presets


def _check(given: FlatTransformerConfig) -> None:
    config = given.with_decoder_sizes()
    config.kept_layers("encoder"), config.kept_layers("decoder")
    for side, heads, embed_dim in (
        ("encoder", config.encoder_attention_heads, config.encoder_embed_dim),
        ("decoder", config.decoder_attention_heads, config.decoder_embed_dim),
    ):
        if embed_dim % heads:
            raise UserError(f"--{side}-attention-heads {heads} must divide --{side}-embed-dim {embed_dim}")
    check_mechanisms(config)


CapsuleTransformerConfig = make_dataclass(
    "CapsuleTransformerConfig",
    (),
    bases=(*(mechanism.options for mechanism in ON_TRANSFORMERS), FlatTransformerConfig),
    namespace={"__module__": __name__, "__post_init__": _check},
)
CapsuleTransformerConfig.__doc__ = """Options of the base preset: fairseq's Transformer and the mechanisms.

Building the model raises a UserError that names an option with a wrong value.
"""


def _both_sides(**sizes: int) -> Dict[str, int]:
    return {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}


# The decoder's embedding and FFN have the encoder's sizes.
SIZES: Dict[str, Dict[str, Any]] = {
    "base": {},
    "big": {
        **_both_sides(attention_heads=16),
        "encoder_embed_dim": 1024,
        "encoder_ffn_embed_dim": 4096,
        "dropout": 0.3,
    },
    "tiny": {**_both_sides(attention_heads=4, layers=4), "encoder_embed_dim": 128, "encoder_ffn_embed_dim": 256},
}


def presets(mechanism: Mechanism) -> Presets:
    """Return the presets of a mechanism, one for each size: this mechanism on, all others off."""
    known = issubclass(CapsuleTransformerConfig, mechanism.options)
    bases = (CapsuleTransformerConfig,) if known else (CapsuleTransformerConfig, mechanism.options)
    values = {**options_off(CapsuleTransformerConfig()), **mechanism.off, **mechanism.on}
    return Presets(
        bases, {f"{mechanism.preset}_transformer_{size}": {**values, **sizes} for size, sizes in SIZES.items()}
    )
