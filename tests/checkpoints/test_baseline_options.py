"""`--like-baseline`: the sizes and the shared embeddings of a baseline's checkpoint."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import MODEL_DATACLASS_REGISTRY, build_model
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.baseline import take_architecture
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig, CapsuleTranslationTask
from tests.tasks.test_capsule_translation import save
from tests.zoo import make_task

LAYERS = {
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_embed_dim": 24,
    "decoder_embed_dim": 24,
    "dropout": 0.25,
}
TRANSFORMER = {
    **LAYERS,
    "encoder_ffn_embed_dim": 40,
    "decoder_ffn_embed_dim": 36,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 3,
    "encoder_normalize_before": True,
    "decoder_learned_pos": True,
    "max_target_positions": 60,
    "activation_fn": "gelu",
}
LSTM = {
    **LAYERS,
    "decoder_layers": 3,
    "encoder_hidden_size": 20,
    "decoder_hidden_size": 28,
    "decoder_out_embed_dim": 24,
    "encoder_bidirectional": True,
}
SHARED_DECODER = {"share_decoder_input_output_embed": True}
ALL_SHARED = {**SHARED_DECODER, "share_all_embeddings": True}
ONE_DIRECTION = {"encoder_bidirectional": False, "encoder_layers": 1, "decoder_layers": 1}


def save_baseline(path, arch, options, dictionaries, saved="cfg"):
    """Save a model of fairseq with all its options, in a config or, as earlier versions of fairseq do, in `args`."""
    args = Namespace(arch=arch, criterion=None, **options)
    model = build_model(args, TranslationTask(TranslationConfig(), *dictionaries)).eval()
    config = {"cfg": {"task": {}, "model": args}, "args": None} if saved == "cfg" else {"cfg": None, "args": args}
    save(path, model=model.state_dict(), **config)
    return model


def take(config, path):
    take_architecture(config, str(path), read_checkpoint(path))


def config_of(arch, **options):
    """Return a model's config as fairseq makes it: options have types, and unknown options are errors."""
    config = OmegaConf.structured(MODEL_DATACLASS_REGISTRY[arch](**options))
    config._name = arch
    OmegaConf.set_struct(config, True)
    return config


def dictionaries(sharing):
    source, target = make_task(40), make_task(40 if sharing.get("share_all_embeddings") else 30)
    if sharing.get("share_all_embeddings"):
        return source.source_dictionary, source.source_dictionary
    return source.source_dictionary, target.target_dictionary


@pytest.mark.parametrize(
    "baseline, options, arch, sharing, saved",
    [
        ("transformer", TRANSFORMER, "gdr_transformer_base", {}, "cfg"),
        ("transformer", TRANSFORMER, "gdr_transformer_base", SHARED_DECODER, "args"),
        ("transformer", TRANSFORMER, "gret_transformer_base", ALL_SHARED, "cfg"),
        ("lstm", LSTM, "gdr_lstm", {}, "args"),
        ("lstm", LSTM, "gdr_lstm", ALL_SHARED, "cfg"),
        ("lstm", {**LSTM, **ONE_DIRECTION}, "gdr_lstm", SHARED_DECODER, "cfg"),
    ],
)
def test_a_model_takes_the_baseline_s_architecture_and_parameters(tmp_path, baseline, options, arch, sharing, saved):
    options = {**options, **sharing}
    if baseline == "lstm" and sharing.get("share_decoder_input_output_embed"):
        options["decoder_out_embed_dim"] = options["decoder_embed_dim"]
    both = dictionaries(sharing)
    plain = save_baseline(tmp_path / "base.pt", baseline, options, both, saved)
    task = CapsuleTranslationTask(
        CapsuleTranslationConfig(init_from_baseline=str(tmp_path / "base.pt"), like_baseline=True), *both
    )
    # The checkpoint overrides the sizes of the configuration, but not options of the training.
    config = config_of(arch, encoder_layers=2, decoder_layers=2, share_all_embeddings=not sharing, dropout=0.5)
    ours = task.build_model(config).state_dict()
    assert all(torch.equal(ours[name], value) for name, value in plain.state_dict().items() if name in ours)
    assert config.encoder_layers == options["encoder_layers"] and config.dropout == 0.5
    # The config, which a checkpoint contains, builds the same model without the baseline.
    again = CapsuleTranslationTask(CapsuleTranslationConfig(), *both).build_model(config).state_dict()
    assert {name: value.shape for name, value in again.items()} == {name: value.shape for name, value in ours.items()}


def save_ours(path, config, dictionaries):
    """Save a new model of this package, as a training of it does."""
    model = CapsuleTranslationTask(CapsuleTranslationConfig(), *dictionaries).build_model(config)
    options = Namespace(**OmegaConf.to_container(config, enum_to_str=True))
    save(path, model=model.state_dict(), cfg={"task": {}, "model": options}, args=None)


def test_a_model_of_this_package_can_be_a_baseline(tmp_path):
    for arch, started, own in (
        ("capsule_lstm", "gdr_lstm", {"encoder_directions": 1}),
        ("gret_transformer_tiny", "gdr_transformer_base", {"encoder_attention_heads": 3}),
    ):
        sizes = {"encoder_layers": 2, "encoder_embed_dim": 12, "decoder_layers": 2, "decoder_embed_dim": 12, **own}
        save_ours(tmp_path / "base.pt", config_of(arch, **sizes), dictionaries({}))
        taken = config_of(started)
        take(taken, tmp_path / "base.pt")
        assert (taken.encoder_layers, taken.encoder_embed_dim) == (2, 12)
        assert own.items() <= dict(taken).items()


def test_a_baseline_of_another_kind_is_refused(tmp_path):
    both = dictionaries({})
    save_baseline(tmp_path / "base.pt", "lstm", LSTM, both)
    with pytest.raises(UserError, match="--like-baseline .*base.pt: it has no option .*attention_heads; name a base"):
        take(config_of("gdr_transformer_base"), tmp_path / "base.pt")
    save_baseline(tmp_path / "base.pt", "transformer", TRANSFORMER, both)
    with pytest.raises(UserError, match="--like-baseline .*base.pt: it has no option .*hidden_size; name a base"):
        take(config_of("gdr_lstm"), tmp_path / "base.pt")
    task = CapsuleTranslationTask(CapsuleTranslationConfig(like_baseline=True), *both)
    with pytest.raises(UserError, match="--like-baseline needs --init-from-baseline, which names the checkpoint"):
        task.build_model(config_of("gdr_transformer_base"))


@pytest.mark.parametrize(
    "options, saved",
    [
        ({"encoder_attention_heads": 1}, "args"),
        ({"activation_fn": "relu"}, "cfg"),
        ({"no_scale_embedding": True}, "cfg"),
        ({"no_token_positional_embeddings": True}, "args"),
    ],
)
def test_a_baseline_that_computes_something_else_is_refused(tmp_path, options, saved):
    """Its parameters have the names and shapes of the model's, so only the options tell."""
    words, sizes = dictionaries({}), {**TRANSFORMER, "decoder_learned_pos": False}
    save_baseline(tmp_path / "baseline.pt", "transformer", sizes, words, saved)
    task = CapsuleTranslationTask(CapsuleTranslationConfig(init_from_baseline=str(tmp_path / "baseline.pt")), *words)
    assert task.build_model(config_of("gdr_transformer_base", **sizes))
    [name] = options
    with pytest.raises(UserError, match=f"its {name} is .*; use the options of the baseline"):
        task.build_model(config_of("gdr_transformer_base", **{**sizes, **options}))


def test_a_baseline_with_another_routing_is_refused(tmp_path):
    """Horizontal routing has no parameters. A mechanism that the baseline does not have may be added."""
    words = dictionaries({})
    task = CapsuleTranslationTask(CapsuleTranslationConfig(init_from_baseline=str(tmp_path / "baseline.pt")), *words)
    routing = {"encoder_routing": "horizontal", "decoder_routing": "none"}
    save_ours(tmp_path / "baseline.pt", config_of("capsule_transformer", **TRANSFORMER, **routing), words)
    for added in ({}, {"decoder_routing": "horizontal"}, {"past_future": "gdr", "guided_heads": "both"}):
        assert task.build_model(config_of("capsule_transformer", **TRANSFORMER, **{**routing, **added}))
    with pytest.raises(UserError, match="its encoder_routing is 'horizontal', but that of the model is 'none'"):
        task.build_model(config_of("gdr_transformer_base", **TRANSFORMER))
    with pytest.raises(UserError, match="its routing_iterations is '3', but that of the model is '2'"):
        task.build_model(config_of("capsule_transformer", **TRANSFORMER, **routing, routing_iterations=2))


def test_options_without_a_value_are_not_compared(tmp_path):
    words = dictionaries({})
    model = save_baseline(tmp_path / "baseline.pt", "transformer", TRANSFORMER, words)
    missing = {"task": {}, "model": {"encoder_xformers_att_config": "???"}}
    save(tmp_path / "baseline.pt", model=model.state_dict(), cfg=missing, args=None)
    task = CapsuleTranslationTask(CapsuleTranslationConfig(init_from_baseline=str(tmp_path / "baseline.pt")), *words)
    assert task.build_model(config_of("gdr_transformer_base", **TRANSFORMER))
