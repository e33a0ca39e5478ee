"""Every registered architecture of the package, with the options for its tests."""

from argparse import Namespace
from dataclasses import fields

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, build_model

import fairseq_capsule.tasks  # noqa: F401  registers the architectures
from fairseq_capsule.mechanisms.registry import options_off
from fairseq_capsule.testing.small_models import (
    LENGTHS,
    SIZES,
    encode,
    logits_of,
    make_batch,
    make_criterion,
    make_sentences,
    make_task,
    small_options,
)
from fairseq_capsule.testing.small_models import build_small as build

__all__ = ["LENGTHS", "build", "encode", "logits_of", "make_batch", "make_criterion", "make_sentences", "make_task"]

ARCHITECTURES = sorted(
    name for name, model in ARCH_MODEL_REGISTRY.items() if model.__module__.startswith("fairseq_capsule.")
)
SMALL = SIZES


def small_preset(arch):
    """Return all options of an architecture at the sizes of the tests."""
    preset = {item.name: str(item.default) for item in fields(MODEL_DATACLASS_REGISTRY[arch])}
    return {**preset, **small_options(arch), "_name": ""}


# At these sizes the presets of a system are equal. The first one of each is tested.
SYSTEMS = []
for arch in ARCHITECTURES:
    if small_preset(arch) not in map(small_preset, SYSTEMS):
        SYSTEMS.append(arch)

# Besides the presets: every option that changes the computation.
OPTIONS = [
    ("capsule_transformer", {"encoder_routing": "vertical", "decoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing": "horizontal", "decoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing_layers": "2"}),
    ("capsule_transformer", {"routing_iterations": 1}),
    ("capsule_transformer", {"routing_iterations": 2, "share_all_embeddings": True}),
    ("capsule_transformer", {"encoder_normalize_before": True, "decoder_normalize_before": True}),
    ("capsule_transformer", {"attention_dropout": 0.1, "dropout": 0.1, "activation_dropout": 0.1}),
    ("capsule_transformer", {"checkpoint_activations": True}),
    ("capsule_transformer", {"decoder_routing": "none", "layernorm_embedding": True}),
    ("capsule_transformer", {"encoder_attention_heads": 16, "decoder_attention_heads": 16}),  # rank 2: factored
    ("gdr_transformer_base", {"past_future": "clf", "redundant_capsules": 0, "guided_heads": "bow"}),
    ("gdr_transformer_base", {"past_future": "attn", "guided_reduction": "printed"}),
    ("gdr_transformer_base", {"redundant_capsules": 0, "guided_heads": "bca"}),
    ("gdr_transformer_base", {"past_future_iterations": 1, "guided_heads": "none"}),
    ("gdr_transformer_base", {"past_future_capsules": 1, "past_future_capsule_dim": 5, "past_future_ffn_dim": 9}),
    ("gdr_transformer_base", {"past_future_capsule_dim": 5, "guided_reduction": "sum"}),
    ("gdr_transformer_base", {"past_future_iterations": 2, "share_all_embeddings": True, "decoder_output_dim": 32}),
    ("gdr_transformer_base", {"encoder_normalize_before": True, "decoder_normalize_before": True}),
    ("gret_transformer_base", {"global_representation": "mean"}),
    ("gret_transformer_base", {"global_aggregation": "none"}),
    ("gret_transformer_base", {"global_gate": "none"}),
    ("gret_transformer_base", {"global_pooling": "mean", "global_capsules": 5}),
    ("gret_transformer_base", {"global_pooling": "concat", "global_capsules": 48, "global_capsule_dim": 3}),
    ("gret_transformer_base", {"global_iterations": 1, "encoder_normalize_before": True}),
    ("selective_transformer_base", {"query_key_norm": "none"}),
    ("selective_transformer_base", {"selective_attention": "none", "query_key_norm": "decoder"}),
    ("selective_transformer_base", {"encoder_routing": "both", "decoder_routing": "horizontal"}),
    ("selective_transformer_base", {"encoder_normalize_before": True, "attention_dropout": 0.1}),
    # three mechanisms in one model
    ("capsule_transformer", {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}),
    ("capsnmt", {"decoder_context": "concat", "leaky_softmax": True}),
    ("capsnmt", {"aggregation_weights": "shared", "aggregation_positions": "none", "aggregation_scoring": "votes"}),
    ("capsnmt", {"aggregation_scoring": "votes", "aggregation_capsules": 3, "aggregation_iterations": 2}),
    ("capsnmt", {"aggregation_scale": 1.0, "aggregation_positions": "result"}),
    ("capsnmt", {"aggregation_iterations": 1, "decoder_layers": 1, "encoder_layers": 1}),
    ("capsnmt", {"decoder_norms": "after", "decoder_context": "concat", "decoder_layers": 1}),
    ("simple_aggregation_tiny", {"decoder_context": "concat"}),
    ("gdr_lstm", {"encoder_directions": 1, "encoder_hidden_size": 20, "share_all_embeddings": True}),
    ("gdr_lstm", {"decoder_out_embed_dim": 24, "encoder_layers": 1, "decoder_layers": 1}),
    ("gdr_lstm", {"past_future": "attn", "guided_heads": "bca"}),
]

# For each architecture of fairseq's families: the options that switch off our parts, and the resulting fairseq model.
OFF = {
    arch: (options_off(MODEL_DATACLASS_REGISTRY[arch]()), "lstm" if arch.endswith("lstm") else "transformer")
    for arch in SYSTEMS
    if arch.endswith("lstm") or "transformer" in arch
}
# A Transformer without mechanisms: every option of fairseq that changes its computation and that can be exported.
PLAIN = "capsule_transformer"
PLAIN_OPTIONS = [
    {},
    {"share_all_embeddings": True},
    {"share_decoder_input_output_embed": True},
    {"encoder_normalize_before": True, "decoder_normalize_before": True},
    {"encoder_normalize_before": True},
    {"decoder_normalize_before": True, "no_decoder_final_norm": True},
    {"layernorm_embedding": True},
    {"layernorm_embedding": True, "encoder_normalize_before": True, "decoder_normalize_before": True},
    {"no_scale_embedding": True},
    *({"activation_fn": name} for name in ("gelu", "gelu_accurate", "gelu_fast", "tanh")),
    {"encoder_learned_pos": True},
    {"decoder_learned_pos": True, "max_target_positions": 30},
    {"encoder_layers": 3, "decoder_layers": 1},
    {"encoder_layers_to_keep": "1"},
    {"encoder_layerdrop": 0.1, "decoder_layerdrop": 0.1},
    {"encoder_attention_heads": 2, "decoder_attention_heads": 8},
    {"decoder_embed_dim": 16, "decoder_ffn_embed_dim": 20},
    {"encoder_embed_dim": 36, "encoder_attention_heads": 6},
    {"decoder_input_dim": 24},
    {"decoder_output_dim": 24},
    {"decoder_input_dim": 24, "decoder_output_dim": 20},
    {"checkpoint_activations": True},
    {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1},
]
LSTMS = [arch for arch in ARCHITECTURES if arch.endswith("lstm")]

CASES = [(arch, {}) for arch in SYSTEMS] + OPTIONS


def case_name(value):
    return value if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items()) or "preset"


def count_parameters(arch, words=40, **options):
    """Return the number of parameters of an architecture of its real size."""
    with torch.device("meta"):
        model = build_model(Namespace(arch=arch, **options), make_task(words))
    return sum(parameter.numel() for parameter in model.parameters())
