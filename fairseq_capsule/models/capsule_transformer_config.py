"""The options of `capsule_transformer` and its presets: each mechanism in each size."""

from dataclasses import make_dataclass
from typing import Any, Dict, Mapping, Sequence

from fairseq_capsule.errors import UserError
from fairseq_capsule.mechanisms import ON_TRANSFORMERS, Mechanism
from fairseq_capsule.mechanisms.base import check_mechanisms
from fairseq_capsule.models.config import FlatTransformerConfig
from fairseq_capsule.models.presets import Presets, bases_of, values_of


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


def presets(name: str, mechanisms: Sequence[Mechanism], on: Mapping[str, Any] = {}) -> Presets:
    """Return presets with some mechanisms, one for each size; all others are off.

    Args:
        name: the first part of their names.
        mechanisms: those that the presets turn on.
        on: further values of options.
    """
    values = values_of(CapsuleTransformerConfig, mechanisms)
    return Presets(
        bases_of(CapsuleTransformerConfig, mechanisms),
        {f"{name}_transformer_{size}": {**values, **sizes, **on} for size, sizes in SIZES.items()},
    )
