"""The presets: each name of fairseq's `--arch` and of `CapsuleConfig.preset`, with the options that it changes."""

from typing import Any, Dict

Options = Dict[str, Any]

# The decoder's embedding and FFN have the encoder's sizes.
BIG: Options = {
    "encoder_embed_dim": 1024,
    "encoder_ffn_embed_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "dropout": 0.3,
}
TINY: Options = {
    "encoder_embed_dim": 128,
    "encoder_ffn_embed_dim": 256,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_layers": 4,
    "decoder_layers": 4,
}
CAPSULE: Options = {"encoder_routing": "both", "decoder_routing": "horizontal"}  # Duan et al. 2020
GDR: Options = {"past_future": "gdr", "guided_heads": "both"}  # Zheng et al. 2019
GRET: Options = {"global_representation": "capsule"}  # Weng et al. 2020
SELECTIVE: Options = {"query_key_norm": "both", "selective_attention": "both"}  # Leviathan et al. 2024
CAPSNMT: Options = {"aggregation": "capsule"}  # Wang et al. 2019
CAPSNMT_TINY: Options = {
    "encoder_embed_dim": 128,
    "decoder_embed_dim": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
}

# Transformers without a mechanism, by size. In fairseq they have no name of their own here.
PLAIN_TRANSFORMERS: Dict[str, Options] = {
    "transformer_base": {},
    "transformer_big": BIG,
    "transformer_tiny": TINY,
}
TRANSFORMERS: Dict[str, Options] = {
    "capsule_transformer": CAPSULE,
    "capsule_transformer_base": CAPSULE,
    "capsule_transformer_big": {**CAPSULE, **BIG},
    "capsule_transformer_tiny": {**CAPSULE, **TINY},
    "gdr_transformer_base": GDR,
    "gdr_transformer_big": {**GDR, **BIG},
    "gdr_transformer_tiny": {**GDR, **TINY},
    "gret_transformer_base": GRET,
    "gret_transformer_big": {**GRET, **BIG},
    "gret_transformer_tiny": {**GRET, **TINY},
    "selective_transformer_base": SELECTIVE,
    "selective_transformer_big": {**SELECTIVE, **BIG},
    "selective_transformer_tiny": {**SELECTIVE, **TINY},
}
# The following are models of fairseq alone.
LSTMS: Dict[str, Options] = {
    "capsule_lstm": {},
    "gdr_lstm": GDR,
}
CAPSNMTS: Dict[str, Options] = {
    "capsnmt": CAPSNMT,
    "capsnmt_base": CAPSNMT,
    "capsnmt_big": {**CAPSNMT, "encoder_embed_dim": 1024, "decoder_embed_dim": 1024, "dropout": 0.3},
    "capsnmt_tiny": {**CAPSNMT, **CAPSNMT_TINY},
    "simple_aggregation_base": {},
    "simple_aggregation_tiny": CAPSNMT_TINY,
}
