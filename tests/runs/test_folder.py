"""The run folder: written files are read back, and damaged files are refused by name."""

import os
import zipfile
from pathlib import Path

import pytest

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs import RunFolder, Settings
from fairseq_capsule_lab.runs.folder import BEST, EPOCH, LINKS, UPDATE
from fairseq_capsule_lab.runs.machine import Machines
from fairseq_capsule_lab.runs.train import Training
from fairseq_capsule_lab.runs.training_plan import TrainingPlan
from fairseq_capsule_lab.stages import Folder
from tests.runs.test_values import one_line


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def refused(call, *arguments):
    with pytest.raises(LabError) as error:
        call(*arguments)
    assert one_line(error)
    return str(error.value)


def test_a_planted_link_is_not_followed(folder):
    victim = folder.path / "victim"
    victim.write_text("untouched")
    for name in (".settings.json.part", f".settings.json.{os.getpid()}-0.part"):
        (folder.path / name).symlink_to(victim)
    folder.write_settings(Settings({"x": 1}))
    assert victim.read_text() == "untouched" and folder.settings() == Settings({"x": 1})


SPECIAL = {
    "link": lambda path, victim: path.symlink_to(victim),
    "dangling link": lambda path, victim: path.symlink_to(victim.with_name("new")),
    "pipe": lambda path, _: os.mkfifo(path),
}
PLACES = ["finished", "checkpoint_last.pt.part", "evaluation", "evaluation/test/scores.json", "a/checkpoint_given.pt"]


@pytest.fixture
def planted(tmp_path, request):
    """A run folder with a link or a special file, and a file outside that it may lead to."""
    kind, place = request.param
    victim, folder = tmp_path / "home" / "victim", tmp_path / "out"
    victim.parent.mkdir()
    victim.write_text("untouched")
    (folder / place).parent.mkdir(parents=True)
    SPECIAL[kind](folder / place, victim)
    return folder, place


@pytest.mark.parametrize("planted", [(kind, place) for kind in SPECIAL for place in PLACES], indirect=True)
def test_a_folder_has_only_files_and_folders(planted):
    folder, place = planted
    message = refused(RunFolder(folder).require_plain)
    assert message.startswith(f"{folder / place}: a ") and "delete it" in message
    assert refused(RunFolder(folder).require_plain, "out").startswith(f"out/{place}: a ")


@pytest.mark.parametrize("planted", [("dangling link", "finished")], indirect=True)
def test_no_checkpoint_is_adopted_into_a_folder_with_a_link(planted, tmp_path):
    folder, _ = planted
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.touch()
    assert "finished: a link" in refused(RunFolder(folder).adopt, checkpoint, "en", "de")
    assert not (tmp_path / "home/new").exists()


def test_the_link_of_adopt_is_accepted(folder, tmp_path):
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.touch()
    adopted = RunFolder(folder.path / "given")
    adopted.adopt(checkpoint, "en", "de")
    adopted.require_plain()
    with Folder(str(adopted.path), "train.sh").locked(LINKS):
        pass
    checkpoint.unlink()
    adopted.require_plain()  # the tables of the other runs can still be printed


def test_a_folder_without_a_checkpoint_accepts_other_settings(folder):
    folder.bind(Settings({"x": 1}), "out")
    folder.note_start({})
    folder.bind(Settings({"x": 2}), "out")
    assert folder.settings() == Settings({"x": 2}) and not folder.manifest_file.exists()
    folder.last_checkpoint.touch()
    assert "x 2, not x 1" in refused(folder.bind, Settings({"x": 1}), "out")
    folder.settings_file.unlink()
    assert "has checkpoints that are not of this script" in refused(folder.bind, Settings({"x": 1}), "out")


@pytest.mark.parametrize(
    "files, named",
    [
        ({"settings": "script prepare.sh\nlimit none\n", "manifest.tsv": "command\tprepare.sh\n"}, "manifest.tsv"),
        ({"settings.json": '{"config": {}}', "manifest.json": '{"name": "my page"}'}, "manifest.json"),
        ({"settings.json": '{"editor": "vi"}'}, "settings.json"),
        ({"settings.json": '{"config": {}}', "manifest.json": "[]"}, "manifest.json"),
    ],
)
def test_files_of_other_programs_are_not_deleted(folder, files, named):
    for name, content in files.items():
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text(content)
    before = {path: path.is_file() and path.read_bytes() for path in folder.path.rglob("*")}
    assert refused(folder.bind, Settings({"x": 1}), "out") == (
        f"out/{named} is not of this script; name another folder"
    )
    assert {path: path.is_file() and path.read_bytes() for path in folder.path.rglob("*")} == before


def test_a_damaged_last_checkpoint_is_replaced(folder):
    for number in (1, 2):
        with zipfile.ZipFile(folder.path / f"checkpoint{number}.pt", "w") as archive:
            archive.writestr("x", str(number))
    (folder.path / "checkpoint_avg_last1.pt").write_bytes((folder.path / "checkpoint1.pt").read_bytes())
    folder.last_checkpoint.write_bytes(b"PK half")
    assert folder.recover_last("out") == folder.path / "checkpoint2.pt"
    assert folder.last_checkpoint.read_bytes() == (folder.path / "checkpoint2.pt").read_bytes()
    assert folder.recover_last("out") is None
    for path in folder.path.glob("*.pt"):
        path.write_bytes(b"PK half")
    assert "no other checkpoint is intact" in refused(folder.recover_last, "out")


LOGGED = b"[now][fairseq.checkpoint_utils][INFO] - Saved checkpoint %s (epoch 2 @ %d updates, score 4.5) (writing)\n"


@pytest.mark.parametrize("place", [b"out/checkpoint2.pt", b"a @ 5 updates/" + b"x" * 4000, "größe @/x".encode()])
def test_the_last_update_is_read_from_the_log(folder, place):
    log = folder.path / "train.log"
    assert folder.last_update == 0
    log.write_bytes(b"Saved checkpoint\nat @ 7 updates\n\xff")
    assert folder.last_update == 0
    log.write_bytes(LOGGED % (place, 12) + LOGGED % (place, 34) + b"a line @ 56 updates\nwithout an end")
    assert folder.last_update == 34


@pytest.fixture
def start(folder):
    """Start a training of three updates, as train.sh does, in a folder whose log says that all are saved."""
    (folder.path / "train.log").write_bytes(LOGGED % (b"out/checkpoint1.pt", 3))

    def run(node):
        machines = Machines((), 1, 1, node, ())
        planned = TrainingPlan(machines, Path("data"), [], Settings({}), "", "", max_update=3, seed=1, resumes=False)
        return Training("train.sh", Folder(str(folder.path), "train.sh"), planned).begin("")

    return run


def test_a_training_whose_checkpoints_were_deleted_starts_again(folder, start):
    assert start(node=0) and not folder.is_finished
    folder.note_end("now", "interrupted")
    assert folder.manifest()["starts"][-1]["end"]["after_update"] == 0 == folder.resume_update
    assert folder.last_update == 3  # a report of a run folder without checkpoints reads it


def test_only_the_first_node_marks_a_training_as_finished_and_only_once(folder, start):
    folder.write_settings(Settings({}))
    with zipfile.ZipFile(folder.last_checkpoint, "w") as archive:
        archive.writestr("x", "1")
    assert not start(node=1) and not folder.is_finished
    assert not start(node=0) and folder.is_finished
    os.utime(folder.finished_file, (1, 1))
    assert not start(node=0) and folder.finished_file.stat().st_mtime == 1  # the folder may be read-only


def test_checkpoints_are_counted_by_kind(folder):
    names = "1 2 10 _1_100 _last _best _avg_last2 .best_loss_4.5 .best_bleu_30.25 _avg_best2_updates"
    for name in names.split():
        (folder.path / f"checkpoint{name}.pt").touch()
    assert [folder.count(kind) for kind in (EPOCH, UPDATE, BEST)] == [3, 1, 2]


@pytest.mark.parametrize("content", ["", "[]", "NaN"])
def test_missing_scores_are_none_and_damaged_ones_are_named(folder, content):
    evaluation = folder.evaluation("test")
    assert evaluation.scores() is None
    evaluation.path.mkdir(parents=True)
    evaluation.scores_file.write_text(content)
    with pytest.raises(
        LabError, match="evaluation/test/scores.json: damaged, a figure in it is unreadable or impossible; delete it"
    ):
        evaluation.scores()
