"""Every way in to a model of the package or of fairseq: other words and another direction are refused.

`tests/cli/test_belonging.py` has the commands, `test_dictionaries.py` fairseq's commands with other dictionaries.
"""

import copy
from pathlib import Path

import fairseq_cli
import pytest
import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule import hub
from fairseq_capsule.checkpoints.belonging import BINARISED, DIGESTS, of_checkpoint
from fairseq_capsule.checkpoints.models import load_model
from tests.checkpoints.ways_in import SETTINGS, SHORT, TASK, WAYS
from tests.integration.commands import SMALL

DIRECTION = "translates? (de-en.*en-de|en-de.*de-en)"


def plain_state(place, task="capsule_translation", *more):
    """fairseq's Transformer as a task saves it; that of the package with digests and with the languages of the data."""
    names = ["--arch", "transformer", *SMALL, *SHORT, "--optimizer", "adam", "--lr", "0.1"]
    arguments = [str(place.data), "--task", task, *more, *SETTINGS, *names]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    assert more or cfg.task.source_lang is None
    task = setup_task(cfg.task)
    state = place.state()
    state["model"] = utils.move_to_cpu(task.build_model(cfg.model).state_dict())
    state["cfg"] = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    state["task_state"] = task.state_dict()
    return state


def reversed_state(state):
    state["cfg"]["task"].update(source_lang="de", target_lang="en")
    state["task_state"]["binarised_as"] = [["de", "en"]]
    return state


def foreign_words(state):
    state["task_state"]["dictionary_digests"] = {"source": "0" * 64, "target": "0" * 64}
    return state


@pytest.fixture(scope="module")
def states(place):
    return {"ours": place.state(), "fairseq's": plain_state(place)}


def test_what_our_tasks_train_says_its_words_and_languages(states):
    ours, plain = (of_checkpoint(name, state) for name, state in states.items())
    assert ours.languages == plain.languages == ("en", "de")
    assert ours.digests == plain.digests and ours.digests.keys() == {"source", "target"}
    assert all(state["task_state"].keys() >= {DIGESTS, BINARISED} for state in states.values())  # without the data
    assert ours.sizes == plain.sizes and not ours.reverses
    assert states["fairseq's"]["cfg"]["task"]["source_lang"] == "en"


def test_languages_that_a_checkpoint_does_not_name_are_those_of_its_data(states):
    state = copy.deepcopy(states["fairseq's"])
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    assert of_checkpoint("older.pt", state).languages == ("en", "de")
    state["cfg"]["task"]["data"] = "gone"
    assert of_checkpoint("older.pt", state).languages is None


def test_every_command_of_fairseq_that_loads_translation_models_is_a_way():
    modules = Path(fairseq_cli.__file__).parent.glob("*.py")
    loading = {module.stem for module in modules if "load_model_ensemble" in module.read_text(encoding="utf-8")}
    assert loading - {"eval_lm", "hydra_validate"} <= set(WAYS)  # of language models; the same as validate


@pytest.mark.parametrize("change, message", [(foreign_words, "other words than those of"), (reversed_state, DIRECTION)])
@pytest.mark.parametrize("kind", ["ours", "fairseq's"])
@pytest.mark.parametrize("way", [way for way in WAYS if way != "restore_file"])  # below: before the model is built
def test_no_way_in_accepts_a_foreign_checkpoint(place, states, way, kind, change, message):
    path = place.write("foreign.pt", change(copy.deepcopy(states[kind])))
    if way == "average" and kind == "fairseq's":
        return  # other parameters than the good one
    with pytest.raises(UserError, match=message):
        getattr(place, way)(path)


def test_words_that_a_task_adds_to_the_dictionaries_are_no_other_words(place):
    state = plain_state(place, "translation_from_pretrained_bart", *TASK[2:], "--langs", "en,de")
    assert len(state["model"]["encoder.embed_tokens.weight"]) > len(place.task.source_dictionary)
    path = place.write("pretrained.pt", state)
    for overrides in ({}, {"data": str(place.data)}):  # fairseq-validate
        checkpoint_utils.load_model_ensemble_and_task([str(path)], overrides)
    assert load_model(path, place.data)[0]
    state["model"]["encoder.embed_tokens.weight"] = state["model"]["encoder.embed_tokens.weight"][:-1]
    with pytest.raises(UserError, match="its encoder's dictionary has .* entries, but that of"):
        load_model(place.write("smaller.pt", state), place.data)


@pytest.mark.parametrize("task", ["translation", "capsule_translation"])
@pytest.mark.parametrize("kind", ["ours", "fairseq's"])
def test_fairseq_s_commands_refuse_the_other_direction(place, states, task, kind):
    path = place.write("reversed.pt", reversed_state(copy.deepcopy(states[kind])))
    with pytest.raises(UserError, match=f"{path}: it translates de-en, but .*bin is en-de"):
        place.generate(path, task=task)


def test_an_ensemble_has_one_direction(place, states):
    path = place.write("asked.pt", reversed_state(copy.deepcopy(states["ours"])))
    with pytest.raises(UserError, match=f"{path}: it translates de-en, but {place.good} en-de; give models of one"):
        hub.load([place.good, path], place.data)


def test_a_direction_that_was_asked_for_is_read(place, states):
    """It was trained so on data of these names, or the caller names the direction."""
    state = reversed_state(copy.deepcopy(states["ours"]))
    path = place.write("reversed.pt", state)
    languages = {"source_lang": "de", "target_lang": "en"}
    assert load_model(path, place.data, languages)[2].cfg.source_lang == "de"
    with pytest.raises(UserError, match=DIRECTION):
        load_model(place.good, place.data, languages)
    state["task_state"]["binarised_as"] = [["en", "de"]]
    assert load_model(place.write("asked.pt", state), place.data)[2].cfg.source_lang == "de"


# --- trainings --------------------------------------------------------------------------------------------------------


def build(place, kind="gdr_transformer_tiny", baseline=None, **checkpoint):
    """Build the task and the model of a training as fairseq-train does, with options of checkpoints."""
    names = ["--arch", kind, *SMALL, *SHORT, "--optimizer", "adam", "--lr", "0.1", "--max-epoch", "12"]
    names += ["--save-dir", str(place.folder / "new"), *(["--init-from-baseline", str(baseline)] if baseline else [])]
    for name, value in checkpoint.items():
        names += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    arguments = [str(place.data), *TASK, *SETTINGS, *names]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    return setup_task(cfg.task).build_model(cfg.model)


STARTS = ["restore_file", "finetune_from_model", "continue_once"]


@pytest.mark.parametrize("change, message", [(foreign_words, "other words than those of"), (reversed_state, DIRECTION)])
@pytest.mark.parametrize("kind", ["ours", "fairseq's"])
@pytest.mark.parametrize("start", STARTS)
def test_a_training_refuses_to_start_from_a_foreign_checkpoint(place, states, start, kind, change, message):
    path = place.write("foreign.pt", change(copy.deepcopy(states[kind])))
    arch = "capsule_transformer_tiny" if kind == "ours" else "transformer"
    with pytest.raises(UserError, match=f"^{path}: it .*{message}"):
        build(place, arch, **{start: path})
    if start == STARTS[0]:
        with pytest.raises(UserError, match=f"--init-from-baseline {path}: it .*{message}"):
            build(place, arch, baseline=path)
        build(place, arch, **{start: place.write("own.pt", states[kind])})
    elif change is reversed_state:
        build(place, arch, **{start: path, "from_other_languages": True})


def test_the_own_last_checkpoint_counts_first(place, states):
    """As fairseq chooses. It may have other words too: the data may have been made again."""
    new = place.folder / "new"
    new.mkdir(exist_ok=True)
    foreign = place.write("foreign.pt", foreign_words(copy.deepcopy(states["ours"])))
    given = ("capsule_transformer_tiny", None)
    try:
        torch.save(states["ours"], new / "checkpoint_last.pt")
        build(place, *given, finetune_from_model=foreign)
        torch.save(foreign_words(copy.deepcopy(states["ours"])), new / "checkpoint_last.pt")
        with pytest.raises(UserError, match="new/checkpoint_last.pt: it was trained with other words"):
            build(place, *given, finetune_from_model=foreign)
    finally:
        (new / "checkpoint_last.pt").unlink()


@pytest.mark.parametrize("like", [False, True])
def test_a_fine_tuning_goes_on_without_its_baseline(place, states, like):
    """The own checkpoint has its parameters, and its sizes."""
    last, gone = place.folder / "new/checkpoint_last.pt", place.folder / "gone.pt"
    last.parent.mkdir(exist_ok=True)
    torch.save(states["ours"], last)
    given = {"like_baseline": True, "encoder_ffn_embed_dim": 28} if like else {}
    try:
        model = build(place, "capsule_transformer_tiny", gone, **given)
    finally:
        last.unlink()
    assert model.encoder.layers[0].fc1.weight.shape == states["ours"]["model"]["encoder.layers.0.fc1.weight"].shape
    with pytest.raises(OSError, match="gone.pt"):
        build(place, "capsule_transformer_tiny", gone)


@pytest.mark.parametrize("option", ["save_dir", "restore_file"])
def test_a_suffix_is_a_part_of_the_name_of_a_checkpoint(place, states, option):
    """As fairseq puts it in."""
    state = foreign_words(copy.deepcopy(states["ours"]))
    folder = place.folder / "suffixed"
    folder.mkdir(exist_ok=True)
    torch.save(state, folder / "checkpoint_last_a.pt")
    value = folder if option == "save_dir" else folder / "checkpoint_last.pt"
    build(place, "capsule_transformer_tiny", **{option: value})
    with pytest.raises(UserError, match="suffixed/checkpoint_last_a.pt: it was trained with other words"):
        build(place, "capsule_transformer_tiny", **{option: value}, checkpoint_suffix="_a")


@pytest.mark.parametrize("start", STARTS)
def test_a_plain_model_is_named_as_a_baseline(place, states, start):
    path = place.write("plain.pt", states["fairseq's"])
    option = "--" + start.replace("_", "-")
    with pytest.raises(UserError, match=f"^{option} {path}: it has no decoder.past.* by --init-from-baseline {path}"):
        build(place, **{start: path})


def test_a_checkpoint_with_all_epochs_or_updates_is_refused(place, states):
    state = copy.deepcopy(states["ours"])
    state["extra_state"]["train_iterator"]["epoch"] = 13
    path = place.write("ended.pt", state)
    message = f"{path} has 12 epochs; give optimization.max_epoch .* above 12, or checkpoint.finetune_from_model"
    with pytest.raises(UserError, match=message):
        build(place, "capsule_transformer_tiny", restore_file=path)
    with pytest.raises(UserError, match="in place of continue_once"):
        build(place, "capsule_transformer_tiny", continue_once=path)
    build(place, "capsule_transformer_tiny", finetune_from_model=path)
    state["extra_state"]["train_iterator"]["epoch"] = 12  # the twelfth has begun
    build(place, "capsule_transformer_tiny", restore_file=place.write("ending.pt", state))
