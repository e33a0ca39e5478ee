"""Checkpoints of another reading of a paper: what older ones lack is filled in, and no training mixes two readings."""

from argparse import Namespace

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu, load_model_ensemble_and_task
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.options import get_training_parser, parse_args_and_arch
from fairseq.tasks import setup_task
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule import hub
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.checkpoints.baseline import refuse_other_computation
from fairseq_capsule.checkpoints.loading import read_checkpoint, refuse_other_readings, with_readings
from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.mechanisms.base import routing_options
from fairseq_capsule.options import READINGS, readings
from tests.checkpoints.ways_in import SETTINGS, TASK
from tests.integration.commands import SMALL, SMALL_CAPSNMT, SMALL_LSTM

# An architecture, its options, the option of its reading, the value before, and the other value.
CASES = [
    ("capsnmt", SMALL_CAPSNMT, "decoder_norms", "after", "both"),
    ("gdr_transformer_tiny", SMALL, "guided_reduction", "sum", "mean"),
    ("gdr_lstm", SMALL_LSTM, "guided_reduction", "sum", "mean"),
]
each_case = pytest.mark.parametrize("arch, sizes, option, before, other", CASES, ids=[case[0] for case in CASES])
FORMS = [(*case, "cfg") for case in CASES] + [(*CASES[1], "args")]
each_form = pytest.mark.parametrize(
    "arch, sizes, option, before, other, form", FORMS, ids=[f"{case[0]}, {case[-1]}" for case in FORMS]
)


def checkpoint(place, name, arch, sizes, form, **values):
    """Write a checkpoint with options of the model: in a config, or in `args`, as fairseq did before it had configs."""
    flags = [word for key, value in values.items() for word in (f"--{key.replace('_', '-')}", value)]
    arguments = [str(place.data), *TASK, *SETTINGS, "--arch", arch, *sizes, *flags]
    args = parse_args_and_arch(get_training_parser(), arguments)
    cfg = convert_namespace_to_omegaconf(args)
    model = setup_task(cfg.task).build_model(cfg.model)
    cfg = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    args = Namespace(**{**cfg["model"], **vars(args)})  # args had the defaults too
    options = {"cfg": cfg, "args": None} if form == "cfg" else {"cfg": None, "args": args}
    return place.write(name, {**place.state(), "model": model.state_dict(), **options})


def old_checkpoint(place, name, arch, sizes, form, option, before):
    """Write a checkpoint of an earlier version: with the parameters of `before`, and without the option."""
    path = checkpoint(place, name, arch, sizes, form, **{option: before})
    state = torch.load(path, weights_only=False)
    if form == "cfg":
        del state["cfg"]["model"][option]
    else:
        delattr(state["args"], option)
    return place.write(name, state)


def test_every_option_exists_and_marks_models_that_have_it():
    for name, (marker, before) in READINGS.items():
        having = [config for config in MODEL_DATACLASS_REGISTRY.values() if name in config.__dataclass_fields__]
        marked = [config for config in MODEL_DATACLASS_REGISTRY.values() if marker in config.__dataclass_fields__]
        assert having == marked and having
        assert all(before in {item.value for item in config.__dataclass_fields__[name].type} for config in having)


@each_form
def test_an_old_checkpoint_keeps_its_reading(place, arch, sizes, option, before, other, form):
    path = old_checkpoint(place, "old.pt", arch, sizes, form, option, before)
    (model,), cfg, _ = load_model_ensemble_and_task([str(path)])
    assert getattr(model.cfg, option) == cfg.model[option] == before
    assert getattr(load_model(path, place.data)[0].cfg, option) == before
    assert getattr(hub.load(path, place.data).models[0].cfg, option) == before


@each_form
def test_a_new_checkpoint_keeps_its_reading(place, arch, sizes, option, before, other, form):
    for value in (before, other):
        path = checkpoint(place, "new.pt", arch, sizes, form, **{option: value})
        (model,), cfg, _ = load_model_ensemble_and_task([str(path)])
        assert getattr(model.cfg, option) == cfg.model[option] == value


@each_form
def test_model_overrides_can_change_the_reading_of_an_old_checkpoint(place, arch, sizes, option, before, other, form):
    """The new norm of CapsNMT has parameters, which an old checkpoint does not have."""
    path = old_checkpoint(place, "old.pt", arch, sizes, form, option, before)
    assert load_checkpoint_to_cpu(str(path), {option: other})["cfg"].model[option] == other
    if option == "decoder_norms":
        with pytest.raises(RuntimeError, match="decoder.layers.0.input_norm.weight"):
            load_model_ensemble_and_task([str(path)], {option: other})
    else:
        assert getattr(load_model_ensemble_and_task([str(path)], {option: other})[0][0].cfg, option) == other
        assert getattr(load_model(path, place.data, {option: other})[0].cfg, option) == other


@each_case
def test_an_average_has_the_reading(place, arch, sizes, option, before, other):
    path = old_checkpoint(place, "old.pt", arch, sizes, "cfg", option, before)
    assert average_checkpoints([path, path])["cfg"]["model"][option] == before


def test_a_baseline_of_another_reading_is_refused(place):
    arch, sizes, option, before, other = CASES[1]
    path = str(old_checkpoint(place, "old.pt", arch, sizes, "cfg", option, before))
    config = load_checkpoint_to_cpu(path)["cfg"].model
    refuse_other_computation(config, path, read_checkpoint(path), routing_options)
    config[option] = other
    with pytest.raises(UserError, match="its guided_reduction is 'sum', but that of the model is 'mean'"):
        refuse_other_computation(config, path, read_checkpoint(path), routing_options)
    without_heads = str(checkpoint(place, "none.pt", arch, sizes, "cfg", guided_heads="none", guided_reduction="sum"))
    config.guided_heads = "none"
    refuse_other_computation(config, without_heads, read_checkpoint(without_heads), routing_options)


@each_form
def test_a_training_does_not_continue_another_reading(place, arch, sizes, option, before, other, form):
    path = old_checkpoint(place, "old.pt", arch, sizes, form, option, before)
    state = with_readings(torch.load(path, weights_only=False))
    options = MODEL_DATACLASS_REGISTRY[arch]()
    setattr(options, option, before)
    refuse_other_readings("old.pt", state, options.__dict__)
    setattr(options, option, other)
    dashed = f"--{option.replace('_', '-')}"
    with pytest.raises(UserError) as refused:
        refuse_other_readings("old.pt", state, Namespace(**options.__dict__))
    assert str(refused.value) == (
        f"old.pt: it was trained with {dashed} {before}, but the model has {dashed} {other}; "
        f"continue with {before}, or train anew in another --save-dir"
    )


def test_an_option_without_effect_is_no_reading():
    assert readings({"guided_heads": "none", "guided_reduction": "mean", "past_future": "none"}) == {}
    assert readings(Namespace(guided_heads="bow", guided_reduction="sum")) == {"guided_reduction": "sum"}


def test_other_models_get_no_option():
    states = [
        {"cfg": {"model": {"_name": "transformer"}}},
        {"cfg": None, "args": Namespace(arch="lstm")},
        {"model": {}},
        {"cfg": {"model": None}},
    ]
    for state in states:
        assert str(with_readings(state)) == str(state)
        assert "decoder_norms" not in str(state) and "guided_reduction" not in str(state)
