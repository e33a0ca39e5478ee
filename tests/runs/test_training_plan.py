"""The plan of train.sh: correct for valid input, one line for invalid input."""

from argparse import Namespace
from pathlib import Path

import pytest
import yaml

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs import plugins, training_plan
from fairseq_capsule_lab.runs.configuration import read_configuration

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
def planned(tmp_path):
    """Plan a training with overrides and options. Return the plan, or the one line of the error."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("train.en-de.en.bin", "train.en-de.de.bin", "dict.en.txt", "dict.de.txt", "valid.en-de.en.bin"):
        (data / name).write_text(name)
    config = tmp_path / "configuration.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    places = {"config": config, "data": data, "out": str(tmp_path / "out"), "precision": "fp32", "nodes": 1}
    options = dict.fromkeys(["gpus", "processes", "effective_tokens", "like_baseline"])

    def run(*overrides, **given):
        try:
            return training_plan.plan(Namespace(**{**places, **options, **given}, overrides=overrides), {})
        except LabError as error:
            assert str(error).isprintable()
            return str(error)

    return run


def test_a_plan_has_batch_command_and_settings(planned, tmp_path):
    plan = planned("optimization.max_update=30", "+model.x=1", "checkpoint.patience=3")
    assert (plan.max_update, plan.seed) == (30, 1)
    assert plan.batch == "400 tokens × 1 × accumulation 2 = 800 tokens"
    assert plan.command[0] == "fairseq-hydra-train" and f"task.data='{tmp_path}/data'" in plan.command
    assert {"optimization.max_update=30", "common.cpu=true", "common.fp16=false"} <= set(plan.command)
    assert plan.settings.origin == {"data": plan.settings.origin["data"], "precision": "fp32", "batch": "800 tokens"}
    assert plan.settings.get("model.x") == 1 and plan.settings.get("checkpoint.patience") == 3
    assert plan.command.count(f"common.user_dir='{plugins.OWN}'") == 1
    assert plan.settings.get("common.user_dir") is None  # the clone may be moved


def test_a_longer_training_resumes_from_its_own_checkpoint(planned, tmp_path):
    former = tmp_path / "former.pt"
    given = [f"checkpoint.restore_file={former}", "checkpoint.reset_optimizer=true"]
    assert f"{given[0]}: no such checkpoint" in planned(*given)
    former.touch()
    plan = planned(*given)
    assert [word for word in plan.command if word.startswith("checkpoint.re")] == given
    assert plan.resuming == ["checkpoint.restore_file=checkpoint_last.pt", "checkpoint.reset_optimizer=false"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out/checkpoint_last.pt").touch()
    former.unlink()  # it is not needed any more
    assert planned(*given).resuming == plan.resuming


@pytest.mark.parametrize(
    "override, message",
    [
        ("max_update=2", "Could not override 'max_update'"),
        ("model.dropout=1,2", "Ambiguous value for argument '++model.dropout=1,2'"),
        ("hydra.run.dir=x", "train.sh sets this; leave it out"),
        ("dataset.max_tokens=many", "dataset.max_tokens must be a whole number from 0 on, not 'many'"),
        ("optimization.update_freq=[0]", "optimization.update_freq must be a positive whole number, not '0'"),
        ("task.target_lang=fr", "has en-de; give task.source_lang=en task.target_lang=de after OUT, or name other"),
        ("model.dropout=???", "model.dropout is required; give model.dropout=... after OUT"),
        ("+optimization.patience=2", "fairseq has no setting optimization.patience"),
        ("++dataset.max_token=9", "fairseq has no setting dataset.max_token; correct its name"),
        ("common.user_dir=nowhere", "nowhere: no package there; name the folder that contains __init__.py"),
    ],
)
def test_wrong_overrides_are_refused(planned, override, message):
    assert message in planned("common.seed=2", override)


@pytest.mark.parametrize(
    "overrides",
    [
        ["+task.eval_bleu=true", "+model.of_a_plugin=1", "+checkpoint.patience=2"],  # fairseq reads or checks them
        ["task.source_lang=de", "task.target_lang=en"],
    ],
)
def test_settings_of_fairseq_and_both_directions_of_the_data_are_accepted(planned, overrides):
    assert isinstance(planned(*overrides), training_plan.TrainingPlan)


def test_a_config_group_is_chosen(planned):
    config = REPOSITORY / "configs/toy/transformer.yaml"
    assert isinstance(planned("size=big", config=config), training_plan.TrainingPlan)
    refusal = planned("size=bgi", config=config)
    assert "Could not find 'size/bgi' Available options in 'size': as_capsnmt big " in refusal


def test_another_plugin_is_named_by_its_folder(planned, my_plugin):
    plan = planned("common.user_dir=my_plugin")
    *_, last = (word for word in plan.command if "common.user_dir=" in word)
    assert last == f"common.user_dir='{my_plugin}'" and plan.settings.get("common.user_dir") == str(my_plugin)


def test_like_baseline_sets_the_options_of_the_task(planned, tmp_path):
    path = tmp_path / "base.pt"
    plan = planned("model.dropout=0.2", like_baseline=path)
    assert f"++task.init_from_baseline='{path}'" in plan.command and "++task.like_baseline=true" in plan.command
    assert plan.settings.get("task.init_from_baseline") == str(path) and plan.settings.get("task.like_baseline") is True
    assert "already sets task.init_from_baseline" in planned("+task.init_from_baseline=x", like_baseline=path)


def test_a_required_setting_is_given_without_a_plus(tmp_path):
    path = tmp_path / "open.yaml"
    path.write_text("task:\n  _name: capsule_translation\n  init_from_baseline: ???\n")
    outcome = read_configuration(path, ["task.init_from_baseline=base.pt"], {})
    assert outcome["task"]["init_from_baseline"] == "base.pt"
