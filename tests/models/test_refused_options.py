"""Wrong options are refused by name when the model is built."""

import math
import re

import pytest
from fairseq.models import MODEL_DATACLASS_REGISTRY

from capsule_routing.errors import UserError
from tests.zoo import SYSTEMS, build

NO_PROBABILITIES = [-0.1, 1.0, math.nan]
# Names of options in fairseq and this package, and values out of range.
WRONG = {
    r"\w*dropout(_in|_out)?|\w*layerdrop": NO_PROBABILITIES,
    r"\w+_layers|max_\w+_positions|\w+_embed_dim|\w+_heads|\w+_hidden_size": [0],
    r"\w+_iterations": [0, 101, 2.5],
}
OF_OTHERS = ("base_layers", "guided_heads", "encoder_routing_layers")


@pytest.mark.parametrize("arch", SYSTEMS)
def test_values_out_of_range_are_named(arch):
    tried = 0
    for name in MODEL_DATACLASS_REGISTRY[arch].__dataclass_fields__:
        for pattern, values in WRONG.items():
            if re.fullmatch(pattern, name) and name not in OF_OTHERS:
                for value in values:
                    option = f"--{name.replace('_', '-')}"
                    with pytest.raises(UserError, match=f"^{option} must be (at least|at most|a whole number)"):
                        build(arch, {name: value})
                    tried += 1
    assert tried > 10


@pytest.mark.parametrize(
    "arch, options, message",
    [
        (
            "capsule_transformer",
            {"encoder_routing_layers": "1-3"},
            "--encoder-routing-layers: '1-3' must name layers from 1 to 2",
        ),
        (
            "capsule_transformer",
            {"cross_self_attention": True, "no_cross_attention": True},
            "--cross-self-attention does not work with attention_routing",
        ),
        (
            "capsule_transformer",
            {"encoder_routing": "up"},
            "--encoder-routing must be one of both, vertical, horizontal, none, not up",
        ),
        (
            "capsule_transformer",
            {"merge_src_tgt_embed": True},
            "--merge-src-tgt-embed: it changes the dictionaries, so no data fits the checkpoints; leave it out, and",
        ),
        (
            "capsule_transformer",
            {"encoder_layers_to_keep": "0,0"},
            "--encoder-layers-to-keep: '0,0' must name different layers",
        ),
        (
            "gdr_transformer_base",
            {"adaptive_softmax_cutoff": [9]},
            "--adaptive-softmax-cutoff does not work with guided losses",
        ),
        ("gdr_lstm", {"redundant_capsules": -1}, "--redundant-capsules must be at least 0, not -1"),
        ("gdr_lstm", {"past_future": "none"}, "--guided-heads both needs --past-future gdr, clf or attn"),
        ("gdr_lstm", {"encoder_directions": 3}, "--encoder-directions must be 1 or 2, not 3"),
        ("gret_transformer_base", {"global_capsules": 0}, "--global-capsules must be at least 1, not 0"),
        ("gret_transformer_base", {"encoder_layers": 1}, "--global-aggregation gru needs at least 2 encoder layers"),
        (
            "gret_transformer_base",
            {"quant_noise_scalar": 0.1},
            "--quant-noise-scalar does not work with --global-aggregation gru",
        ),
        (
            "gret_transformer_base",
            {"encoder_layerdrop": 0.1},
            "layerdrop does not work with global_representation",
        ),
        (
            "gret_transformer_base",
            {"encoder_layers": 3, "encoder_layers_to_keep": "0,2"},
            "--encoder-layers-to-keep does not work with global_representation",
        ),
        (
            "gret_transformer_base",
            {"decoder_output_dim": 16},
            "the encoder's size 32 to the decoder's output of size 16; make them equal",
        ),
        ("capsnmt", {"aggregation_capsules": 1}, "--aggregation-capsules must be at least 2, not 1"),
        ("capsnmt", {"decoder_embed_dim": 16}, "--decoder-embed-dim 16 must equal --encoder-embed-dim 32"),
        ("capsnmt", {"aggregation_scale": 0.0}, "--aggregation-scale must be above 0, not 0.0"),
    ],
)
def test_values_that_do_not_fit_are_named(arch, options, message):
    with pytest.raises(UserError, match=message):
        build(arch, options)
