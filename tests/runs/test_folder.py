"""The run folder: written files are read back, and damaged files are refused by name."""

import json
import os
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_capsule_runs import RunError, RunFolder, Settings
from fairseq_capsule_runs.folder import BEST, EPOCH, UPDATE
from tests.runs import hostile
from tests.runs.test_values import one_line

KEYS = st.sampled_from(["generation", "task", "beam", "model", "_name", "x", "lr"])
CONFIGS = st.dictionaries(
    KEYS, st.recursive(hostile.values("MARK"), lambda some: st.dictionaries(KEYS, some), max_leaves=5)
)
FORMER = """script train.sh
data 0123456789ab
precision fp32
task._name translation
task.source_lang en
generation.beam 4
generation.lenpen 0.6
optimizer.adam_betas (0.9,0.98)
optimization.lr [0.004]
optimization.warmup 1e-07
batch 800 tokens
"""


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def refused(call, *arguments):
    with pytest.raises(RunError) as error:
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


@settings(max_examples=50)
@given(CONFIGS, hostile.texts("MARK"))
def test_settings_are_read_as_they_were_written(config, batch):
    written = Settings(config, {"data": "0", "batch": batch})
    assert Settings.from_json(written.to_json()) == written


@given(st.one_of(st.text(), hostile.texts("MARK"), hostile.values("MARK").map(json.dumps), CONFIGS.map(json.dumps)))
def test_any_settings_are_read_or_refused(tmp_path_factory, text):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    for file in (folder.former_settings_file, folder.settings_file):
        file.write_text(text, encoding="utf-8", errors="replace", newline="")
        try:
            found = folder.settings()
        except RunError as error:
            assert one_line(error) and str(error).startswith(f"{file}: ") and "restore the file" in str(error)
            continue
        for read in (found.whole, found.number, found.name):
            try:
                value = read("generation.beam", 5)
            except RunError as error:
                assert one_line(error) and str(error).startswith("generation.beam must be ")
            else:
                assert type(value) in (int, float, str)
        try:
            folder.bind(Settings({"x": 1}), "out")
        except RunError as error:
            assert one_line(error)


@given(
    st.one_of(
        st.text(),
        hostile.values("MARK").map(json.dumps),
        hostile.values("MARK").map(lambda v: json.dumps({"starts": v})),
    )
)
def test_any_manifest_is_read_or_refused(tmp_path_factory, text):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    folder.manifest_file.write_text(text, encoding="utf-8", errors="replace")
    try:
        folder.note_start({"command": "train.sh"})
    except RunError as error:
        assert one_line(error) and "manifest.json: no manifest of train.sh" in str(error)
    else:
        folder.note_end("now", "finished")
        assert folder.manifest()["starts"][-1]["end"]["how"] == "finished"


def test_a_folder_of_the_former_format_is_read(folder):
    folder.former_settings_file.write_text(FORMER)
    folder.last_checkpoint.touch()
    found = folder.settings()
    assert found.get("generation.beam") == 4 and found.get("task._name") == "translation"
    assert found.get("optimization.lr") == [0.004] and found.get("optimizer.adam_betas") == "(0.9,0.98)"
    config = {
        "task": {"_name": "translation", "source_lang": "en", "data": None},
        "generation": {"beam": 4, "lenpen": 0.6},
        "optimizer": {"adam_betas": "(0.9,0.98)"},
        "optimization": {"lr": [0.004], "warmup": 1e-7},
    }
    now = Settings(config, {"data": "0123456789ab", "precision": "fp32", "batch": "800 tokens"})
    folder.bind(now, "out")
    assert not folder.settings_file.exists() and folder.former_settings_file.read_text() == FORMER
    now.config["generation"]["beam"] = 5
    assert refused(folder.bind, now, "out") == (
        "out was trained with generation.beam 4, not generation.beam 5; name another folder"
    )


@pytest.mark.parametrize("text", ["a.b 1\na 2\na.b.c 3\n", "a.b 1\n\nc 2\n", "generation.beam 4\n$(touch x) 3\n"])
def test_damaged_settings_of_the_former_format_are_refused(folder, text):
    folder.former_settings_file.write_text(text)
    assert "restore the file, or train in another folder" in refused(folder.settings)


def test_a_folder_without_a_checkpoint_accepts_other_settings(folder):
    folder.bind(Settings({"x": 1}), "out")
    folder.note_start({})
    folder.bind(Settings({"x": 2}), "out")
    assert folder.settings() == Settings({"x": 2}) and not folder.manifest_file.exists()
    folder.last_checkpoint.touch()
    assert "x 2, not x 1" in refused(folder.bind, Settings({"x": 1}), "out")
    folder.settings_file.unlink()
    assert "has checkpoints that are not of this script" in refused(folder.bind, Settings({"x": 1}), "out")


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


def test_checkpoints_are_counted_by_kind(folder):
    names = "1 2 10 _1_100 _last _best _avg_last2 .best_loss_4.5 .best_bleu_30.25 _avg_best2_updates"
    for name in names.split():
        (folder.path / f"checkpoint{name}.pt").touch()
    assert [folder.count(kind) for kind in (EPOCH, UPDATE, BEST)] == [3, 1, 2]


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, "NaN"])
def test_missing_or_damaged_scores_are_none(folder, content):
    evaluation = folder.evaluation("test")
    assert evaluation.scores() is None
    evaluation.path.mkdir(parents=True)
    evaluation.scores_file.write_text(content)
    assert evaluation.scores() is None
