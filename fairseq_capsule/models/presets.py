"""The presets of the Transformers: each name of `--arch`, its options and its class.

fairseq stores the dataclass on the registered class and takes all defaults of the command line from it. Therefore each
preset has a model class of its own.
"""

from typing import Optional

from fairseq.models import register_model

from fairseq_capsule.mechanisms.attention_routing import DECODER_PARTS, ENCODER_PARTS
from fairseq_capsule.mechanisms.global_representation import REPRESENTATIONS
from fairseq_capsule.mechanisms.past_future import HEADS, SEPARATIONS
from fairseq_capsule.mechanisms.selective_attention import SIDES
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerConfig, CapsuleTransformerModel
from fairseq_capsule.options import preset


# The decoder's embedding and FFN have the encoder's sizes.
@preset
class BigConfig(CapsuleTransformerConfig):
    encoder_embed_dim: Optional[int] = 1024
    encoder_ffn_embed_dim: int = 4096
    encoder_attention_heads: int = 16
    decoder_attention_heads: int = 16
    dropout: float = 0.3


@preset
class TinyConfig(CapsuleTransformerConfig):
    encoder_embed_dim: Optional[int] = 128
    encoder_ffn_embed_dim: int = 256
    encoder_attention_heads: int = 4
    decoder_attention_heads: int = 4
    encoder_layers: int = 4
    decoder_layers: int = 4


@preset
class CapsuleTransformerBaseConfig(CapsuleTransformerConfig):
    encoder_routing: ENCODER_PARTS = "both"
    decoder_routing: DECODER_PARTS = "horizontal"


@preset
class CapsuleTransformerBigConfig(BigConfig):
    encoder_routing: ENCODER_PARTS = "both"
    decoder_routing: DECODER_PARTS = "horizontal"


@preset
class CapsuleTransformerTinyConfig(TinyConfig):
    encoder_routing: ENCODER_PARTS = "both"
    decoder_routing: DECODER_PARTS = "horizontal"


@register_model("capsule_transformer", dataclass=CapsuleTransformerBaseConfig)
@register_model("capsule_transformer_base", dataclass=CapsuleTransformerBaseConfig)
class CapsuleTransformerBaseModel(CapsuleTransformerModel):
    """Attention routing in encoder and decoder (Duan et al. 2020)."""


@register_model("capsule_transformer_big", dataclass=CapsuleTransformerBigConfig)
class CapsuleTransformerBigModel(CapsuleTransformerModel):
    """Attention routing in encoder and decoder (Duan et al. 2020)."""


@register_model("capsule_transformer_tiny", dataclass=CapsuleTransformerTinyConfig)
class CapsuleTransformerTinyModel(CapsuleTransformerModel):
    """Attention routing in encoder and decoder (Duan et al. 2020)."""


@preset
class GdrTransformerBaseConfig(CapsuleTransformerConfig):
    past_future: SEPARATIONS = "gdr"
    guided_heads: HEADS = "both"


@preset
class GdrTransformerBigConfig(BigConfig):
    past_future: SEPARATIONS = "gdr"
    guided_heads: HEADS = "both"


@preset
class GdrTransformerTinyConfig(TinyConfig):
    past_future: SEPARATIONS = "gdr"
    guided_heads: HEADS = "both"


@register_model("gdr_transformer_base", dataclass=GdrTransformerBaseConfig)
class GdrTransformerBaseModel(CapsuleTransformerModel):
    """PAST and FUTURE by guided dynamic routing (Zheng et al. 2019)."""


@register_model("gdr_transformer_big", dataclass=GdrTransformerBigConfig)
class GdrTransformerBigModel(CapsuleTransformerModel):
    """PAST and FUTURE by guided dynamic routing (Zheng et al. 2019)."""


@register_model("gdr_transformer_tiny", dataclass=GdrTransformerTinyConfig)
class GdrTransformerTinyModel(CapsuleTransformerModel):
    """PAST and FUTURE by guided dynamic routing (Zheng et al. 2019)."""


@preset
class GretTransformerBaseConfig(CapsuleTransformerConfig):
    global_representation: REPRESENTATIONS = "capsule"


@preset
class GretTransformerBigConfig(BigConfig):
    global_representation: REPRESENTATIONS = "capsule"


@preset
class GretTransformerTinyConfig(TinyConfig):
    global_representation: REPRESENTATIONS = "capsule"


@register_model("gret_transformer_base", dataclass=GretTransformerBaseConfig)
class GretTransformerBaseModel(CapsuleTransformerModel):
    """One vector for the source sentence, from capsules (Weng et al. 2020)."""


@register_model("gret_transformer_big", dataclass=GretTransformerBigConfig)
class GretTransformerBigModel(CapsuleTransformerModel):
    """One vector for the source sentence, from capsules (Weng et al. 2020)."""


@register_model("gret_transformer_tiny", dataclass=GretTransformerTinyConfig)
class GretTransformerTinyModel(CapsuleTransformerModel):
    """One vector for the source sentence, from capsules (Weng et al. 2020)."""


@preset
class SelectiveTransformerBaseConfig(CapsuleTransformerConfig):
    query_key_norm: SIDES = "both"
    selective_attention: SIDES = "both"


@preset
class SelectiveTransformerBigConfig(BigConfig):
    query_key_norm: SIDES = "both"
    selective_attention: SIDES = "both"


@preset
class SelectiveTransformerTinyConfig(TinyConfig):
    query_key_norm: SIDES = "both"
    selective_attention: SIDES = "both"


@register_model("selective_transformer_base", dataclass=SelectiveTransformerBaseConfig)
class SelectiveTransformerBaseModel(CapsuleTransformerModel):
    """Normalised queries and keys, and words that mask keys (Leviathan et al. 2024)."""


@register_model("selective_transformer_big", dataclass=SelectiveTransformerBigConfig)
class SelectiveTransformerBigModel(CapsuleTransformerModel):
    """Normalised queries and keys, and words that mask keys (Leviathan et al. 2024)."""


@register_model("selective_transformer_tiny", dataclass=SelectiveTransformerTinyConfig)
class SelectiveTransformerTinyModel(CapsuleTransformerModel):
    """Normalised queries and keys, and words that mask keys (Leviathan et al. 2024)."""
