"""An architecture has the same options on the command line, in Hydra and in Python."""

from argparse import Namespace
from dataclasses import fields

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from capsule_routing import presets
from fairseq_capsule.mechanisms.registry import active_mechanisms, options_off, registered
from fairseq_capsule.models.capsnmt import CapsNMTConfig
from fairseq_capsule.models.capsule_lstm import CapsuleLSTMConfig
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerConfig
from fairseq_capsule.options import validated
from tests.integration.commands import PLUGIN
from tests.zoo import ARCHITECTURES


def from_command_line(*arguments):
    parser = options.get_training_parser()
    return convert_namespace_to_omegaconf(
        options.parse_args_and_arch(parser, ["data", "--user-dir", str(PLUGIN), *arguments])
    ).model


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_command_line_uses_the_values_of_the_preset(arch):
    """fairseq has one dataclass for each model class, so presets of one class would have the values of the last one."""
    config, preset = from_command_line("--arch", arch), MODEL_DATACLASS_REGISTRY[arch]()
    for item in fields(preset):
        if item.name != "_name":
            value = getattr(config, item.name)
            expected = getattr(preset, item.name)
            assert str(value) == str(expected) or value == expected, item.name
    assert config._name == arch


def sizes_of(arch, config):
    nested = validated(config, MODEL_DATACLASS_REGISTRY[arch]).nested()
    encoder, decoder = nested.encoder, nested.decoder
    widths = (encoder.embed_dim, encoder.ffn_embed_dim, decoder.embed_dim, decoder.ffn_embed_dim)
    return (*widths, decoder.input_dim, decoder.output_dim)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"encoder_embed_dim": 64, "encoder_ffn_embed_dim": 96}, (64, 96, 64, 96, 64, 64)),
        ({"encoder_embed_dim": 64, "decoder_embed_dim": 64, "decoder_ffn_embed_dim": 48}, (64, None, 64, 48, 64, 64)),
    ],
)
def test_the_sizes_of_the_decoder_follow_the_encoder_as_in_fairseq_s_transformer(given, expected):
    arch = "gret_transformer_tiny"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    inner = MODEL_DATACLASS_REGISTRY[arch]().encoder_ffn_embed_dim
    expected = tuple(inner if size is None else size for size in expected)
    assert sizes_of(arch, from_command_line("--arch", arch, *words)) == expected
    config = OmegaConf.merge(OmegaConf.structured(MODEL_DATACLASS_REGISTRY[arch]()), given)  # as Hydra does
    assert sizes_of(arch, config) == expected


@pytest.mark.parametrize(
    "size, width, inner, layers", [("base", 512, 2048, 6), ("big", 1024, 4096, 6), ("tiny", 128, 256, 4)]
)
def test_presets_have_their_sizes_and_mechanisms(size, width, inner, layers):
    for mechanism, past_future, encoder_routing in (
        ("capsule", "none", "both"),
        ("gdr", "gdr", "none"),
        ("gret", "none", "none"),
    ):
        arch = f"{mechanism}_transformer_{size}"
        config = from_command_line("--arch", arch)
        assert sizes_of(arch, config) == (width, inner, width, inner, width, width)
        assert (config.encoder_layers, config.decoder_layers) == (layers, layers)
        assert (config.past_future, config.encoder_routing) == (past_future, encoder_routing)


@pytest.mark.parametrize(
    "mechanism, options",
    [
        ("attention_routing", presets.CAPSULE),
        ("past_future", presets.GDR),
        ("global_representation", presets.GRET),
        ("selective_attention", presets.SELECTIVE),
        ("aggregation", presets.CAPSNMT),
    ],
)
def test_a_preset_has_the_values_that_turn_its_mechanism_on(mechanism, options):
    assert registered(mechanism).on == options


MODELS = {
    "gdr_transformer_tiny": CapsuleTransformerConfig,
    "gdr_lstm": CapsuleLSTMConfig,
    "capsnmt_tiny": CapsNMTConfig,
}


@pytest.mark.parametrize("arch, model", MODELS.items())
def test_a_preset_has_the_help_texts_and_ranges_of_its_model(arch, model):
    preset = {item.name: item.metadata for item in fields(MODEL_DATACLASS_REGISTRY[arch])}
    assert preset == {item.name: item.metadata for item in fields(model)}
    assert preset["dropout"]["help"]


@pytest.mark.parametrize("model", MODELS.values())
def test_the_defaults_of_a_model_turn_all_mechanisms_off(model):
    assert not active_mechanisms(model())
    assert {name: str(getattr(model(), name)) for name in options_off(model())} == options_off(model())


def test_an_lstm_can_have_one_direction():
    assert from_command_line("--arch", "gdr_lstm", "--encoder-directions", "1").encoder_directions == 1
    lstm = CapsuleLSTMConfig(encoder_directions=1, encoder_embed_dim=64).lstm_options()
    assert isinstance(lstm, Namespace) and lstm.encoder_bidirectional is False and lstm.encoder_embed_dim == 64
