"""The plan of train.sh: correct for valid input, one line for invalid input."""

from pathlib import Path

import pytest
import yaml

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs import plugins, training_plan
from fairseq_capsule_lab.runs.configuration import read_configuration
from tests.runs.test_values import one_line

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG = {
    "defaults": ["_self_"],
    "task": {"_name": "translation", "source_lang": "en", "target_lang": "de"},
    "model": {"_name": "capsule_transformer_tiny", "dropout": 0.1},
    "optimization": {"max_update": 20, "max_epoch": 0, "lr": [0.004], "update_freq": [2]},
    "dataset": {"max_tokens": 400, "batch_size": None},
    "common": {"seed": 1, "user_dir": "fairseq_capsule"},
    "generation": {"beam": 4, "lenpen": 0.6, "nbest": 1},
    "checkpoint": {"keep_last_epochs": 3, "keep_interval_updates": -1},
}


@pytest.fixture
def arguments(tmp_path):
    """The arguments of train.sh. The test writes `config`."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("train.en-de.en.bin", "train.en-de.de.bin", "dict.en.txt", "dict.de.txt", "valid.en-de.en.bin"):
        (data / name).write_text(name)
    places = {"config": str(tmp_path / "configuration.yaml"), "data": str(data), "out": str(tmp_path / "out")}
    options = dict.fromkeys(["gpus", "processes", "nodes", "effective-tokens", "like-baseline"], "")
    return {**places, **options, "precision": "fp32"}


def write(arguments, config=CONFIG):
    Path(arguments["config"]).write_text(yaml.safe_dump(config, allow_unicode=True))
    return arguments


def planned(arguments, *overrides, **environment):
    """The plan, or the one line of the error."""
    try:
        return training_plan.plan(arguments, overrides, environment)
    except LabError as error:
        assert one_line(error)
        return str(error)


def test_a_plan_has_batch_command_and_settings(arguments):
    plan = planned(write(arguments), "optimization.max_update=30", "+model.x=1")
    assert (plan.max_update, plan.seed) == (30, 1)
    assert plan.batch == "400 tokens × 1 × accumulation 2 = 800 tokens"
    assert plan.command[0] == "fairseq-hydra-train" and f"task.data='{arguments['data']}'" in plan.command
    assert {"optimization.max_update=30", "common.cpu=true", "common.fp16=false"} <= set(plan.command)
    assert plan.settings.origin == {"data": plan.settings.origin["data"], "precision": "fp32", "batch": "800 tokens"}
    assert plan.settings.get("model.x") == 1


def test_a_longer_training_resumes_from_its_own_checkpoint(arguments, tmp_path):
    former = tmp_path / "former.pt"
    given = [f"checkpoint.restore_file={former}", "checkpoint.reset_optimizer=true"]
    assert f"{given[0]}: no such checkpoint" in planned(write(arguments), *given)
    former.touch()
    assert [word for word in planned(arguments, *given).command if word.startswith("checkpoint.re")] == given
    (tmp_path / "out").mkdir()
    (tmp_path / "out/checkpoint_last.pt").touch()
    former.unlink()  # it is not needed any more
    # Of two values Hydra takes the last.
    resumed = [word for word in planned(arguments, *given).command if word.startswith("checkpoint.re")]
    own = ["checkpoint.restore_file=checkpoint_last.pt", "checkpoint.reset_optimizer=false"]
    assert resumed == [*given, *own]


@pytest.mark.parametrize(
    "override, message",
    [
        ("max_update=2", "max_update=2: neither a setting, GROUP.NAME, nor a config group; give for example optimiz"),
        ("model.dropout=1,2", "not a single value; give key=value"),
        ("hydra.run.dir=x", "train.sh sets this; leave it out"),
        ("optimization.update_freq=[0]", "optimization.update_freq must be a positive whole number, not '0'"),
        ("task.target_lang=fr", "it translates en-fr, but "),
        ("task.source_lang=fr", "has en-de; give task.source_lang=en after OUT, or name other data"),
    ],
)
def test_wrong_overrides_are_refused(arguments, override, message):
    """By name: the file is not at fault."""
    refusal = planned(write(arguments), "common.seed=2", override)
    assert refusal.startswith(f"{override}: ") and message in refusal


@pytest.mark.parametrize(
    "override, remedy",
    [
        ("+optimization.patience=2", "fairseq has no setting optimization.patience; give checkpoint.patience"),
        ("++dataset.max_token=9", "correct its name"),
        ("+optimisation.max_epoch=9", "give optimization.max_epoch"),
    ],
)
def test_an_added_setting_that_fairseq_would_ignore_is_refused(arguments, override, remedy):
    refusal = planned(write(arguments), override)
    assert refusal.startswith(f"{override}: fairseq has no setting ") and refusal.endswith(remedy)


@pytest.mark.parametrize("override", ["+task.eval_bleu=true", "+model.of_a_plugin=1", "+checkpoint.patience=2"])
def test_an_added_setting_that_fairseq_reads_or_checks_is_accepted(arguments, override):
    assert isinstance(planned(write(arguments), override), training_plan.TrainingPlan)


def test_a_setting_of_fairseq_that_is_not_in_the_file_is_accepted(arguments):
    assert planned(write(arguments), "checkpoint.patience=3").settings.get("checkpoint.patience") == 3


def test_a_wrong_choice_of_a_config_group_lists_the_files_of_the_group(arguments):
    arguments = {**arguments, "config": str(REPOSITORY / "configs/toy/transformer.yaml")}
    assert isinstance(planned(arguments, "size=big"), training_plan.TrainingPlan)
    refusal = planned(arguments, "size=bgi")
    assert "Could not find 'size/bgi' Available options in 'size': as_capsnmt big " in refusal
    assert "sizes=big: neither" in planned(arguments, "sizes=big")


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")])
def test_both_directions_of_the_data_are_accepted(arguments, languages):
    words = [f"task.{side}_lang={language}" for side, language in zip(("source", "target"), languages)]
    assert isinstance(planned(write(arguments), *words), training_plan.TrainingPlan)


def test_the_plugin_is_the_one_beside_the_scripts(arguments):
    plan = planned(write(arguments))
    assert plan.command.count(f"common.user_dir='{plugins.OWN}'") == 1
    assert plan.settings.get("common.user_dir") is None  # the clone may be moved


def test_a_configuration_or_an_override_names_another_plugin(arguments, my_plugin, forked_plugins):
    by_override = planned(write(arguments), "common.user_dir=my_plugin")
    in_the_file = planned(write(arguments, {**CONFIG, "common": {"user_dir": str(my_plugin)}}))
    for plan in (by_override, in_the_file):
        *_, last = (word for word in plan.command if "common.user_dir=" in word)
        assert last == f"common.user_dir='{my_plugin}'"
        assert plan.settings.get("common.user_dir") == str(my_plugin)


@pytest.mark.parametrize(
    "text, message",
    [
        (None, "no package there; name the folder that contains __init__.py"),
        ("", "it does not import fairseq_capsule; add 'import fairseq_capsule' to it"),
        ("import fairseq_capsule.tasks; 1 / 0", "it cannot be imported (ZeroDivisionError: division by zero)"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused(arguments, tmp_path, forked_plugins, text, message):
    folder = tmp_path / "wrong_plugin"
    folder.mkdir()
    if text is not None:
        (folder / "__init__.py").write_text(text)
    outcome = planned(write(arguments), f"common.user_dir={folder}")
    assert f"common.user_dir={folder}: common.user_dir {folder}: {message}" in outcome


def test_like_baseline_sets_the_options_of_the_task(arguments, tmp_path):
    (tmp_path / "base.pt").touch()
    path = str(tmp_path / "base.pt")
    plan = planned({**write(arguments), "like-baseline": path}, "model.dropout=0.2")
    assert f"++task.init_from_baseline='{path}'" in plan.command and "++task.like_baseline=true" in plan.command
    assert plan.settings.get("task.init_from_baseline") == path and plan.settings.get("task.like_baseline") is True
    assert "no such checkpoint" in planned({**arguments, "like-baseline": f"{path}x"})
    for sign in ("", "+", "++"):
        twice = planned({**arguments, "like-baseline": path}, f"{sign}task.init_from_baseline=x")
        assert "already sets task.init_from_baseline; leave it out" in twice


def test_a_missing_baseline_of_the_configuration_is_refused(arguments, tmp_path):
    missing = tmp_path / "missing.pt"
    refused = planned(write(arguments), f"+task.init_from_baseline={missing}")
    assert f"task.init_from_baseline={missing}: no such checkpoint" in refused
    missing.touch()
    assert isinstance(planned(arguments, f"+task.init_from_baseline={missing}"), training_plan.TrainingPlan)


def test_shared_embeddings_of_two_dictionaries_are_refused(arguments):
    data = Path(arguments["data"])
    (data / "dict.en.txt").write_text("a 2\nb 1\n")
    (data / "dict.de.txt").write_text("a 3\nb 1\n")
    share = "+model.share_all_embeddings=true"
    assert isinstance(planned(write(arguments), share), training_plan.TrainingPlan)
    (data / "dict.de.txt").write_text("b 2\na 1\n")
    assert f"the two dictionaries of {data} differ; give model.share_all_embeddings=false" in planned(arguments, share)
    assert isinstance(planned(arguments), training_plan.TrainingPlan)


def test_a_required_setting_is_given_without_a_plus(tmp_path):
    path = tmp_path / "open.yaml"
    path.write_text("task:\n  _name: capsule_translation\n  init_from_baseline: ???\n")
    outcome = read_configuration(path, ["task.init_from_baseline=base.pt"], {})
    assert outcome["task"]["init_from_baseline"] == "base.pt"
