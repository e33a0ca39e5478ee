"""An architecture has the same options on the command line, in Hydra and in Python."""

import pickle
from argparse import Namespace
from dataclasses import fields

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from fairseq.models.transformer.transformer_config import TransformerConfig

from fairseq_capsule.models.capsule_lstm import CapsuleLSTMConfig
from fairseq_capsule.models.capsule_transformer_config import CapsuleTransformerConfig
from fairseq_capsule.models.mechanism import options_off
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


@pytest.mark.parametrize("size, width, layers", [("base", 512, 6), ("big", 1024, 6), ("tiny", 128, 4)])
def test_presets_have_their_sizes_and_mechanisms(size, width, layers):
    for mechanism, past_future, encoder_routing in (
        ("capsule", "none", "both"),
        ("gdr", "gdr", "none"),
        ("gret", "none", "none"),
    ):
        config = from_command_line("--arch", f"{mechanism}_transformer_{size}")
        assert (config.encoder_embed_dim, config.decoder_embed_dim) == (width, width)
        assert (config.encoder_layers, config.decoder_layers) == (layers, layers)
        assert (config.past_future, config.encoder_routing) == (past_future, encoder_routing)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_classes_of_presets_can_be_pickled(arch):
    for kind in (MODEL_REGISTRY[arch], MODEL_DATACLASS_REGISTRY[arch]):
        for base in kind.__mro__:
            if base.__module__.startswith("fairseq_capsule."):
                assert pickle.loads(pickle.dumps(base)) is base
    config = MODEL_DATACLASS_REGISTRY[arch]()
    assert pickle.loads(pickle.dumps(config)) == config


def test_classes_of_presets_have_distinct_names():
    for registry in (MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY):
        names = [registry[arch].__qualname__ for arch in ARCHITECTURES]
        assert len({*names}) == len(names)


def test_a_capsule_lstm_has_no_mechanism_by_default():
    config = CapsuleLSTMConfig()
    off = options_off(config)
    assert off
    assert {name: getattr(config, name) for name in off} == off


def test_the_base_preset_has_the_sizes_of_fairseq_s_transformer():
    ours, theirs = CapsuleTransformerConfig(), TransformerConfig()
    assert ours.encoder_embed_dim == theirs.encoder.embed_dim and ours.decoder_layers == theirs.decoder.layers


def test_an_lstm_can_have_one_direction():
    assert from_command_line("--arch", "gdr_lstm", "--encoder-directions", "1").encoder_directions == 1
    lstm = CapsuleLSTMConfig(encoder_directions=1, encoder_embed_dim=64).lstm_options()
    assert isinstance(lstm, Namespace) and lstm.encoder_bidirectional is False and lstm.encoder_embed_dim == 64
