"""The run folder: which training it belongs to, and what its files say."""

import os
import zipfile
from pathlib import Path

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.runs import RunFolder, Settings
from fairseq_capsule_lab.runs.folder import BEST, EPOCH, UPDATE
from fairseq_capsule_lab.runs.machine import Machines
from fairseq_capsule_lab.runs.train import Training
from fairseq_capsule_lab.runs.training_plan import TrainingPlan
from fairseq_capsule_lab.stages import Folder


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def checkpoint(path, content="1"):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", content)


def test_a_folder_without_a_checkpoint_accepts_other_settings(folder):
    folder.bind(Settings({"x": 1}), "out")
    folder.note_start({})
    folder.bind(Settings({"x": 2}), "out")
    assert folder.settings() == Settings({"x": 2}) and folder.manifest() == {"starts": []}
    folder.last_checkpoint.touch()
    with pytest.raises(UserError, match="out was trained with x 2, not x 1; name another folder"):
        folder.bind(Settings({"x": 1}), "out")


def test_another_training_never_adds_to_checkpoints(folder):
    """evaluate.sh would average those of both, also if the newest one was deleted."""
    folder.bind(Settings({"x": 1}), "out")
    (folder.path / "checkpoint5.pt").touch()
    with pytest.raises(UserError, match="out was trained with x 1, not x 2; name another folder"):
        folder.bind(Settings({"x": 2}), "out")
    assert folder.settings() == Settings({"x": 1})


@pytest.mark.parametrize(
    "name, content",
    [
        ("checkpoint_last.pt", ""),
        ("checkpoint5.pt", ""),
        ("settings.json", '{"editor": "vi"}'),
        ("manifest.json", "{}"),
    ],
)
def test_files_of_other_programs_are_not_changed(folder, name, content):
    (folder.path / name).write_text(content)
    with pytest.raises(UserError, match="name another folder"):
        folder.bind(Settings({"x": 1}), "out")
    assert [(path.name, path.read_text()) for path in folder.path.iterdir()] == [(name, content)]


def test_a_damaged_last_checkpoint_is_replaced(folder):
    for number in (1, 2):
        checkpoint(folder.path / f"checkpoint{number}.pt", str(number))
    for name in ("checkpoint_avg_last1.pt", "checkpoint_average.pt", "checkpoint_given.pt"):  # not of the training
        checkpoint(folder.path / name)
    folder.last_checkpoint.write_bytes(b"PK half")
    assert folder.recover_last("out") == folder.path / "checkpoint2.pt"
    assert folder.last_checkpoint.read_bytes() == (folder.path / "checkpoint2.pt").read_bytes()
    assert folder.recover_last("out") is None
    for path in folder.path.glob("*.pt"):
        path.write_bytes(b"PK half")
    with pytest.raises(UserError, match="no other checkpoint is intact"):
        folder.recover_last("out")


LOGGED = b"[now][fairseq.checkpoint_utils][INFO] - Saved checkpoint %s (epoch 2 @ %d updates, score 4.5) (writing)\n"


@pytest.fixture
def start(folder):
    """Start a training of three updates, as train.sh does, in a folder whose log says that all are saved."""
    log = b"Saved checkpoint\nat @ 7 updates\n\xff" + LOGGED % (b"out @ 5 updates/checkpoint1.pt", 3)
    (folder.path / "train.log").write_bytes(log + b"a line @ 56 updates\nwithout an end")

    def run(node):
        machines = Machines((), 1, 1, node, ())
        planned = TrainingPlan(
            machines, Path("data"), [], [], Settings({}), "", "", max_update=3, max_epoch=0, warmup=0, seed=1
        )
        return Training("train.sh", Folder(str(folder.path), "train.sh"), planned).begin("")

    return run


def test_a_training_whose_checkpoints_were_deleted_starts_again(folder, start):
    assert start(node=0) and not folder.is_finished
    folder.note_end("now", "interrupted")
    assert folder.manifest()["starts"][-1]["end"]["after_update"] == 0 == folder.resume_update
    assert folder.last_update == 3  # a report of a run folder without checkpoints reads it


def test_only_the_first_node_marks_a_training_as_finished_and_only_once(folder, start):
    folder.write_settings(Settings({}))
    checkpoint(folder.last_checkpoint)
    assert not start(node=1) and not folder.is_finished
    assert not start(node=0) and folder.is_finished
    os.utime(folder.finished_file, (1, 1))
    assert not start(node=0) and folder.finished_file.stat().st_mtime == 1  # the folder may be read-only


def test_checkpoints_are_counted_by_kind(folder):
    names = "1 2 10 _1_100 _last _best _avg_last2 .best_loss_4.5 .best_bleu_30.25 _avg_best2_updates"
    for name in names.split():
        (folder.path / f"checkpoint{name}.pt").touch()
    assert [folder.count(kind) for kind in (EPOCH, UPDATE, BEST)] == [3, 1, 2]
