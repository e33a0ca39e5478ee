"""The plan of evaluate.sh: correct for valid input, one line for invalid input."""

import shutil
from pathlib import Path

import pytest

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs import RunFolder, Settings, evaluate
from tests.runs.test_training_plan import CONFIG
from tests.runs.test_values import one_line


@pytest.fixture
def run(tmp_path):
    """The arguments of evaluate.sh for a run with three checkpoints."""
    for name in ("checkpoint1.pt", "checkpoint2.pt", "checkpoint3.pt", "checkpoint_last.pt", "checkpoint_best.pt"):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).touch()
    for name in ("bin/test.en-de.en.bin", "bin/dict.en.txt", "raw/test.de"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).touch()
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(Settings(CONFIG))
    folder.finish()
    options = dict.fromkeys(
        [
            "split",
            "checkpoints",
            "beam",
            "lenpen",
            "nbest",
            "against",
            "user-dir",
            "max-tokens",
            "lowercase",
            "results",
        ],
        "",
    )
    places = {"run": str(folder.path), "data": str(tmp_path / "data")}
    return {**places, **options}


def evaluated(arguments):
    try:
        return evaluate.plan(arguments)
    except LabError as error:
        assert one_line(error)
        return str(error)


def test_the_plan_follows_the_configuration(run):
    plan = evaluated(run)
    assert (plan.beam, plan.lenpen, plan.nbest, plan.task, plan.source, plan.target) == (
        *(4, "0.6", 1),
        *("translation", "en", "de"),
    )
    assert plan.average[1:5] == ("average", run["run"], "--last", "3")
    assert plan.notes == ()
    assert evaluated({**run, "lenpen": "1"}).lenpen == "1"
    plan.checkpoint.touch()
    assert evaluated(run).average == ()


@pytest.mark.parametrize(
    "keep, taken, note",
    [
        ({"keep_last_epochs": 10}, "last3", "3 of the 10 checkpoints that are averaged by default; using last:3"),
        ({"keep_last_epochs": 2}, "last2", ""),
        ({"keep_last_epochs": -1}, "best", ""),
        ({}, "best", ""),
    ],
)
def test_as_many_checkpoints_are_averaged_as_there_are(run, keep, taken, note):
    folder = Path(run["run"])
    (folder / "checkpoint_best.pt").touch()
    RunFolder(folder).write_settings(Settings({**CONFIG, "checkpoint": keep}))
    plan = evaluated(run)
    assert plan.checkpoint.stem.endswith(taken)
    assert [text.partition(" has ")[2] for text in plan.notes] == [note] * bool(note)
    refusal = "last:4 averages 4; give --checkpoints last:3 or checkpoint_"
    assert refusal in evaluated({**run, "checkpoints": "last:4"})
    for path in folder.glob("checkpoint[0-9]*.pt"):
        path.unlink()
    assert evaluated(run).checkpoint.name == "checkpoint_best.pt"
    (folder / "checkpoint_best.pt").unlink()
    assert evaluated(run).endswith("; give --checkpoints checkpoint_last.pt")
    assert evaluated({**run, "checkpoints": "checkpoint_last.pt"}).checkpoint.name == "checkpoint_last.pt"


def test_a_training_that_ended_within_an_epoch_is_noted(run):
    folder = Path(run["run"])
    assert evaluated(run).notes == ()  # checkpoint_last.pt is a copy of the newest one
    (folder / "checkpoint_last.pt").write_text("later")
    (note,) = evaluated(run).notes
    assert note.startswith(
        "checkpoint_last.pt is newer than checkpoint3.pt, the newest of the checkpoints that are aver"
    )
    assert note.endswith("; --checkpoints checkpoint_last.pt translates with it")


@pytest.mark.parametrize(
    "prepared, scoring",
    [
        ("bpe sentencepiece\nsource en\ntarget de\ntokenise moses\n", "--tokenized yes"),
        ("source en\ntarget de\ntokenise none\n", "--tokenized no"),
        ("source en\ntarget de\ntokenise characters,jieba\n", "--tokenized yes"),
        ("source de\ntarget en\ntokenise characters,moses\n", "--tokenized no --remove-bpe sentencepiece"),
        ("script prepare-multi30k.sh\nmerges 10000\n", ""),
        ("script prepare-wmt14-en-de.sh\nbpe sentencepiece\n", "--tokenized yes"),
        ("script prepare.sh\nbpe sentencepiece-bpe\n", "--tokenized no"),
        (None, ""),
    ],
)
def test_translations_are_scored_as_their_text_was_tokenised(run, prepared, scoring):
    if prepared is not None:
        (Path(run["data"]) / "settings").write_text(prepared, encoding="latin-1")
    assert " ".join(evaluated(run).scoring) == f"--lang de {scoring}".rstrip()


def test_a_run_folder_does_not_name_a_program(run, my_plugin, forked_plugins):
    """The plugin is imported only if the user names it too."""
    recorded = {**CONFIG, "common": {"user_dir": str(my_plugin)}}
    RunFolder(Path(run["run"])).write_settings(Settings(recorded))
    refused = evaluated(run)
    assert f"trained with the plugin {my_plugin}" in refused and "if you trust it, give its folder by --user" in refused
    assert not (my_plugin / "imported").exists()
    plan = evaluated({**run, "user-dir": "my_plugin"})
    assert (plan.plugin, plan.notes) == (my_plugin, ())
    other = shutil.copytree(my_plugin, my_plugin.with_name("other_plugin"))
    plan = evaluated({**run, "user-dir": str(other)})
    assert plan.plugin == other and f"was trained with the plugin {my_plugin}, not {other}" in plan.notes[0]


def test_a_run_that_names_no_plugin_can_be_given_one(run, my_plugin, forked_plugins):
    plan = evaluated({**run, "user-dir": str(my_plugin)})
    assert (plan.plugin, plan.notes) == (my_plugin, ())


@pytest.mark.parametrize("which", ["run", "against"])
def test_an_evaluation_of_a_folder_with_a_link_is_refused(run, which, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    other = shutil.copytree(run["run"], tmp_path / "other")
    folder = Path({"run": run["run"], "against": other}[which])
    (folder / "evaluation").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    outcome = evaluated({**run, "against": str(other) if which == "against" else ""})
    assert str(outcome).startswith(f"{folder}/evaluation: a link")
