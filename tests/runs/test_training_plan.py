"""The plan of train.sh: correct for valid input, one line for invalid input."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from capsule_routing.errors import UserError
from fairseq_capsule_lab.runs import machine, plugins, training_plan
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
        (data / name).write_text(name.partition(".")[0])
    config = tmp_path / "configuration.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    arguments = training_plan.TrainingArguments(config=config, data=data, out=str(tmp_path / "out"))

    def run(*overrides, environment=None, dry_run=False, **given):
        try:
            args = replace(arguments, overrides=overrides, **given)
            return training_plan.plan(args, {"CUDA_VISIBLE_DEVICES": "", **(environment or {})}, dry_run)
        except UserError as error:
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
        ("hydra.run.dir=x", "train.sh sets this; leave it out"),
        ("dataset.max_tokens=many", "dataset.max_tokens must be a whole number from 0 on, not 'many'"),
        ("task.target_lang=fr", "has en-de; give task.source_lang=en task.target_lang=de after OUT, or name other"),
        ("model.dropout=???", "model.dropout is required; give model.dropout=... after OUT"),
        ("+max_update=2", "neither a setting, GROUP.NAME, nor a config group; give for example optimization.max_"),
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


def test_a_language_may_have_a_hyphen(planned, tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"data/train.en-de.{language}.bin").unlink()
    for language in ("zh-Hans", "en"):
        (tmp_path / f"data/train.zh-Hans-en.{language}.bin").touch()
    assert "has zh-Hans-en; give task.source_lang=zh-Hans task.target_lang=en after OUT" in planned()
    assert isinstance(planned("task.source_lang=zh-Hans", "task.target_lang=en"), training_plan.TrainingPlan)


def test_a_config_group_is_chosen(planned):
    config = REPOSITORY / "configs/toy/transformer.yaml"
    assert isinstance(planned("size=big", config=config), training_plan.TrainingPlan)
    refusal = planned("size=bgi", config=config)
    assert "Could not find 'size/bgi' Available options in 'size': as_capsnmt big " in refusal


@pytest.mark.parametrize(
    "tokens, processes, accumulation", [(1600, None, "[4]"), (1550, 2, "[2]"), (1200, 3, "[1]"), (None, 2, None)]
)
def test_effective_tokens_choose_the_accumulation(planned, tokens, processes, accumulation):
    plan = planned(effective_tokens=tokens, processes=processes)
    chosen = [word.partition("=")[2] for word in plan.command if word.startswith("optimization.update_freq=")]
    assert chosen == ([accumulation] if accumulation else [])
    assert ("(rounded from 1550)" in plan.batch) == (tokens == 1550)
    assert plan.settings.get("dataset.max_tokens") == (None if tokens else 400)  # it may change with the machine


def test_effective_tokens_that_cannot_be_met_are_refused(planned):
    assert "cannot be met: 1 × dataset.max_tokens=400 is 400 tokens" in planned(effective_tokens=600)
    sentences = planned("dataset.max_tokens=null", "dataset.batch_size=50", effective_tokens=600)
    assert "the batch is dataset.batch_size=50 sentences; set max_tokens" in sentences
    both = planned("dataset.batch_size=8", effective_tokens=1600)
    assert (
        "dataset.batch_size=8 makes batches of fewer tokens than dataset.max_tokens; give dataset.batch_size=null"
        in both
    )
    assert planned("dataset.batch_size=8").batch.endswith(" tokens, at most 8 sentences in a batch of a process")


def test_gpus_set_launcher_and_settings(planned):
    seen = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    plan = planned(gpus=2, precision="bf16", environment=seen)
    assert plan.command[:5] == ["torchrun", "--standalone", "--nproc-per-node", "2", "--no-python"]
    assert {"common.bf16=true", "common.fp16=false"} <= set(plan.command) and "common.cpu=true" not in plan.command
    world, rank = "distributed_training.distributed_world_size", "distributed_training.distributed_rank"
    assert {f"{world}=2", rank + "=${oc.env:RANK}"} <= set(plan.command)
    assert f"{world}=4" in planned(environment=seen).command and plan.machines.gpus == ("0", "1")
    assert planned(gpus=1, environment=seen).command[0] == "fairseq-hydra-train"
    assert planned(gpus=0, environment=seen).machines.gpus == ()
    assert "give only one of the options" in planned(gpus=1, processes=2, environment=seen)
    assert "--gpus 9: only 4 visible here" in planned(gpus=9, environment=seen)
    assert "--precision bf16: fairseq supports it only on GPUs" in planned(precision="bf16")


@pytest.mark.parametrize("names", ["NoDevFiles", "-1", "-1,0", "NoDevFiles,1", "none"])
def test_what_is_no_device_hides_all(planned, names):
    assert planned(environment={"CUDA_VISIBLE_DEVICES": names}).machines.gpus == ()


def test_a_dry_run_needs_no_gpu(planned):
    plan = planned(gpus=4, precision="bf16", dry_run=True)
    assert plan.machines.gpus == ("0", "1", "2", "3") and "common.bf16=true" in plan.command
    assert planned(gpus=2, dry_run=True, environment={"CUDA_VISIBLE_DEVICES": "7"}).machines.gpus == ("7", "0")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_task_for_each_gpu_is_refused_in_every_task(planned, nodes):
    step = {"SLURM_STEP_NUM_TASKS": str(4 * nodes), "SLURM_STEP_NUM_NODES": str(nodes), "SLURM_NTASKS": "8"}
    for node in range(nodes):
        refusal = planned(nodes=nodes, processes=2, environment={**step, "SLURM_NODEID": str(node)})
        assert f"srun started {4 * nodes} tasks on {nodes} nodes; give srun --ntasks-per-node 1" in refusal
    assert isinstance(planned(environment={"SLURM_NTASKS": "8"}), training_plan.TrainingPlan)  # a batch script
    assert "if each task has a folder of its own, set SLURM_STEP_NUM_TASKS=1 before train.sh" in refusal
    sweep = planned(processes=2, environment={**step, "SLURM_STEP_NUM_TASKS": "1"})
    assert isinstance(sweep, training_plan.TrainingPlan)


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["optimization.lr=0.001"], "optimization.lr must be a list such as [0.001]"),
        (["task.target_lang=false"], 'task.target_lang: YAML reads an unquoted no as false; write "no" in CONFIG'),
        (
            ["+task.init_from_baseline=???"],
            "=... after OUT, or task.init_from_baseline=null to train from scratch",
        ),
    ],
)
def test_a_setting_that_fairseq_would_not_take_is_named(planned, overrides, message):
    assert message in planned(*overrides)


def test_one_matrix_for_two_dictionaries_is_refused(planned, tmp_path):
    shared = "+model.share_all_embeddings=true"
    assert isinstance(planned(shared), training_plan.TrainingPlan)
    (tmp_path / "data/dict.de.txt").write_text("other 1\n")
    assert "a dictionary of its own (--share separate); give model.share_all_embeddings=false" in planned(shared)
    assert isinstance(planned(), training_plan.TrainingPlan)


@pytest.mark.parametrize(
    "environment, master, port",
    [
        ({"NODE_RANK": "1", "MASTER_ADDR": "first"}, "first", "29500"),
        ({"SLURM_NODEID": "1", "SLURM_JOB_NODELIST": "n[3-4]", "SLURM_JOB_ID": "7012"}, "n3", "29512"),
    ],
)
def test_nodes_set_the_launcher(planned, monkeypatch, environment, master, port):
    names = {("scontrol", "show", "hostnames", "n[3-4]"): ["n3", "n4"]}
    monkeypatch.setattr(machine, "output", lambda *words: names[words])
    plan = planned(nodes=2, processes=2, environment=environment)
    launcher = f"--nnodes 2 --node-rank 1 --master-addr {master} --master-port {port} --nproc-per-node 2 --no-python"
    assert " ".join(plan.command).startswith(f"torchrun {launcher}")
    assert "distributed_training.distributed_world_size=4" in plan.command
    assert "the number of this node is unknown" in planned(nodes=2)
    assert "MASTER_ADDR is not set" in planned(nodes=2, environment={"NODE_RANK": "0"})


def test_another_plugin_is_named_by_its_folder(planned, my_plugin):
    plan = planned("common.user_dir=my_plugin")
    *_, last = (word for word in plan.command if "common.user_dir=" in word)
    assert last == f"common.user_dir='{my_plugin}'" and plan.settings.get("common.user_dir") == str(my_plugin)


def test_like_baseline_sets_the_options_of_the_task(planned, tmp_path):
    path = tmp_path / "base.pt"
    assert (
        planned(like_baseline=path) == f"--like-baseline {path}: no such checkpoint; name that of a finished training"
    )
    path.touch()
    plan = planned("model.dropout=0.2", like_baseline=path)
    assert f"++task.init_from_baseline='{path}'" in plan.command and "++task.like_baseline=true" in plan.command
    assert plan.settings.get("task.init_from_baseline") == str(path) and plan.settings.get("task.like_baseline") is True
    assert "already sets task.init_from_baseline" in planned("+task.init_from_baseline=x", like_baseline=path)


def test_a_required_setting_is_given_without_a_plus(tmp_path):
    path = tmp_path / "open.yaml"
    path.write_text("task:\n  _name: capsule_translation\n  init_from_baseline: ???\n")
    outcome = read_configuration(path, ["task.init_from_baseline=base.pt"], {})
    assert outcome["task"]["init_from_baseline"] == "base.pt"
