"""Rows of a table whose model comes from another package."""

import pytest

from capsule_routing.errors import UserError
from experiments.tables.definitions import load_table
from experiments.tables.runs import Workspace
from experiments.tables.scales import load_scale
from experiments.tables.steps import work_of
from fairseq_capsule_lab.runs.settings import Settings

SMOKE = load_scale("smoke")
MINE = """
title: Mine
columns:
  BLEU: {corpus: toy, measure: bleu}
  NLL: {corpus: toy, measure: nll}
  speed: {corpus: toy, measure: speed_train}
rows:
  Transformer: {run: transformer}
  mine: {run: transformer common.user_dir=plugins/mine model._name=my_transformer}
"""


def test_commands_import_the_plugin_of_a_row(tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    table = load_table(str(tmp_path / "mine.yaml"))
    here, other = tmp_path / "here", tmp_path / "other"
    for plugin in (None, other):
        work = work_of(table, SMOKE, Workspace(tmp_path, tmp_path, here, plugin))
        own, mine = work.trainings
        words = {step.output: step.words for step in work.steps()}
        assert mine == "smoke/toy-smoke/transformer+_name-my_transformer+user_dir-mine/seed1"
        for run, folder in ((own, plugin), (mine, here / "plugins/mine")):
            option = ["--user-dir", str(folder)] if folder else []
            assert words[f"{run}/measures/nll.json"][: len(option) + 2] == ["fairseq-capsule", *option, "nll"]
            assert [word for word in words[f"{run}/evaluation/test/scores.json"] if word in option] == option
            override = [f"common.user_dir='{folder}'"] if folder else []
            assert [word for word in words[f"{run}/finished"] if "user_dir=" in word] == override
        timed = words[f"{mine}/measures/throughput-train.json"]
        assert timed[timed.index("--user-dir") + 1] == str(here / "plugins/mine")
        with pytest.raises(UserError, match="the plugin .*: no package there; name the folder"):
            work.refuse_wrong_plugins()


def test_plugins_of_one_name_do_not_share_a_run(tmp_path):
    other = "  other: {run: transformer common.user_dir=others/mine model._name=my_transformer}\n"
    (tmp_path / "mine.yaml").write_text(MINE + other)
    with pytest.raises(UserError, match="two rows name different plugins of the same folder name"):
        work_of(load_table(str(tmp_path / "mine.yaml")), SMOKE, Workspace(tmp_path, tmp_path, tmp_path))


def test_a_run_of_another_plugin_is_refused(tmp_path):
    for folder in ("plugins/mine", "others/mine"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text("import fairseq_capsule.tasks\n")
    (tmp_path / "mine.yaml").write_text(MINE)
    work = work_of(load_table(str(tmp_path / "mine.yaml")), SMOKE, Workspace(tmp_path, tmp_path, tmp_path))
    run = work.runs[work.trainings[1]].folder
    run.path.mkdir(parents=True)
    for folder in ("plugins/mine", "others/mine"):
        run.write_settings(Settings({"common": {"user_dir": str(tmp_path / folder)}}))
        if folder == "plugins/mine":
            work.refuse_wrong_plugins()
    with pytest.raises(UserError, match="trained with the plugin .*others/mine, not .*plugins/mine; give another"):
        work.refuse_wrong_plugins()
