"""The archive of results, scripts/share_results.py."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "share_results.py"
GENERATED = "S-{n}\t{source}\nT-{n}\t{target}\nH-{n}\t-0.5\tein haus\nD-{n}\t-0.5\tein haus\nP-{n}\t-0.5 -0.5\n"
# The second source and target have a word that is not in the dictionary.
SOURCES, TARGETS = ("a house", "a <unk>"), ("ein haus", "ein <<unk>>")
LOG = """\
[2026-11-23 01:55:03,369][fairseq_cli.train][INFO] - task: CapsuleTranslationTask
[2026-11-23 01:55:03,369][fairseq_cli.train][INFO] - num. shared model params: 1,111 (num. trained: 1,111)
[2026-11-23 01:55:17,978][valid][INFO] - epoch 001 | valid on 'valid' subset | loss 11.7 | num_updates 6
"""


def run(*arguments):
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


@pytest.fixture
def data(tmp_path):
    """Prepared data with two test pairs."""
    folder = tmp_path / "data" / "multi30k"
    texts = {"bpe/test.en": "a house\na house-boat\n", "bpe/test.de": "ein haus\nein hausboot\n"}
    words = {"bin/dict.en.txt": "a 1\nhouse 1\n", "bin/dict.de.txt": "ein 1\nhaus 1\n"}
    for name, text in {**texts, **words}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def runs(tmp_path):
    """A finished run with every file of a run folder, and an unfinished run."""
    runs = tmp_path / "runs"
    folder = runs / "small" / "multi30k" / "transformer" / "seed1"
    (folder / "evaluation" / "test").mkdir(parents=True)
    (folder / "measures").mkdir()
    (folder / "finished").touch()
    (folder / "checkpoint_last.pt").write_bytes(b"x" * 1000)
    (folder / "train.log").write_text(LOG)
    task = {"_name": "capsule_translation", "source_lang": "en", "target_lang": "de"}
    (folder / "settings.json").write_text(json.dumps({"config": {"task": task}}))
    start = {"host": "here", "command": f"train.sh '/home/me/configs/transformer.yaml' '{folder}'", "seed": 1}
    (folder / "manifest.json").write_text(json.dumps({"starts": [start]}, indent=1))
    (folder / "measures" / "nll.json").write_text('{"nll": 2.5}')
    outputs = (
        GENERATED.format(n=n, source=source, target=target) for n, (source, target) in enumerate(zip(SOURCES, TARGETS))
    )
    (folder / "evaluation" / "test" / "generate.out").write_text("a line of the log\n" + "".join(outputs))
    scores = {"references": ["/home/me/My Files/test.de"], "against": str(runs / "small" / "x")}
    (folder / "evaluation" / "test" / "scores.json").write_text(json.dumps(scores))
    several = folder.parent / "seeds1-3" / "compared" / "x"
    several.mkdir(parents=True)
    (several / "test.json").write_text('{"scores": {}}')
    unfinished = folder.parent / "seed2"
    unfinished.mkdir()
    (unfinished / "settings.json").write_text("{}")
    return runs


def test_an_archive_has_no_checkpoints_no_text_of_the_corpus_and_no_paths(runs, tmp_path):
    assert run("pack", runs, tmp_path / "a.tar.xz").returncode == 0
    with tarfile.open(tmp_path / "a.tar.xz") as tar:
        content = {Path(name).name: tar.extractfile(name).read().decode() for name in tar.getnames()}
        assert not any("seed2" in name for name in tar.getnames())
    expected = {"settings.json", "manifest.json", "finished", "train.log", "nll.json", "scores.json", "generate.out"}
    assert set(content) == {*expected, "test.json"}
    assert content["generate.out"] == "H-0\t-0.5\tein haus\nH-1\t-0.5\tein haus\n"
    assert "CapsuleTranslationTask" not in content["train.log"] and "num_updates 6" in content["train.log"]
    assert json.loads(content["scores.json"]) == {"references": ["test.de"], "against": "small/x"}
    [start] = json.loads(content["manifest.json"])["starts"]
    assert start == {"seed": 1}


def test_the_same_results_give_the_same_bytes(runs, tmp_path):
    for name in ("a", "b"):
        assert run("pack", runs, tmp_path / f"{name}.tar.xz").returncode == 0
        (runs / "small/multi30k/transformer/seed1/finished").touch()
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()


def test_the_sentences_are_added_from_the_data(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    unpacked = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert unpacked.returncode == 0, unpacked.stderr
    before, after = (
        set((folder / "small/multi30k/transformer/seed1/evaluation/test/generate.out").read_text().splitlines())
        for folder in (runs, tmp_path / "out")
    )
    assert after == {line for line in before if line[:2] in ("S-", "T-", "H-")}


def test_the_sentences_of_an_adopted_baseline_are_added(runs, data, tmp_path):
    (runs / "small/multi30k/transformer/seed1").rename(runs / "small/multi30k/given")
    run("pack", runs, tmp_path / "a.tar.xz")
    assert run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data).returncode == 0
    assert "S-0\ta house\n" in (tmp_path / "out/small/multi30k/given/evaluation/test/generate.out").read_text()


def test_data_of_another_length_are_refused(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    (data / "bpe" / "test.en").write_text("a house\n")
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "2 translations, but" in refused.stderr and "has 1 lines" in refused.stderr


def test_a_damaged_dictionary_is_named(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    (data / "bin" / "dict.en.txt").write_text("a\n")
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert "dict.en.txt, line 1: 'a' is not 'SYMBOL COUNT'" in refused.stderr


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_a_truncated_archive_is_refused(runs, tmp_path, kept):
    run("pack", runs, tmp_path / "a.tar.xz")
    content = (tmp_path / "a.tar.xz").read_bytes()
    (tmp_path / "a.tar.xz").write_bytes(content[: int(kept * len(content))])
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out")
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "a.tar.xz: damaged or cut short; download it again" in refused.stderr
    assert not list(tmp_path.glob("*out*"))


def test_an_archive_is_unpacked_beside_other_runs(runs, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    assert run("unpack", tmp_path / "a.tar.xz", runs).returncode == 0
    assert (runs / "small/multi30k/transformer/seed1/checkpoint_last.pt").exists()


def test_an_archive_cannot_write_outside_the_folder(tmp_path):
    (tmp_path / "x").write_text("x")
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "x", "../outside")
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out")
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert not (tmp_path / "outside").exists()


def test_a_folder_without_finished_runs_is_refused(tmp_path):
    refused = run("pack", tmp_path, tmp_path / "a.tar.xz")
    assert refused.returncode == 1 and "no finished runs" in refused.stderr
    assert not (tmp_path / "a.tar.xz").exists()


def test_a_damaged_report_is_named(runs, tmp_path):
    (runs / "small/multi30k/transformer/seed1/measures/nll.json").write_text("")
    refused = run("pack", runs, tmp_path / "a.tar.xz")
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and "nll.json: not JSON" in refused.stderr
    assert not (tmp_path / "a.tar.xz").exists()
