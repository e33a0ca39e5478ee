"""`fairseq-capsule toy-corpus`: the files that it writes, and its errors."""

import errno
import os

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.splits import draw_splits, write_parallel
from fairseq_capsule_lab.corpora.toy.sampler import sentence_pairs
from fairseq_capsule_lab.errors import LabError

NAMES = ["test.de", "test.en", "train.de", "train.en", "valid.de", "valid.en"]


def run(folder, *options):
    return main(["toy-corpus", str(folder), "--train", "30", "--valid", "4", "--test", "5", *options])


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_it_writes_six_parallel_files(tmp_path, capsys):
    assert run(tmp_path / "new" / "folder") == 0
    written = contents(tmp_path / "new" / "folder")
    assert sorted(written) == NAMES
    for split, pairs in draw_splits(sentence_pairs(1), {"train": 30, "valid": 4, "test": 5}).items():
        for language, lines in zip(("en", "de"), zip(*pairs)):
            assert written[f"{split}.{language}"].decode("utf-8") == "".join(f"{line}\n" for line in lines)
    assert "wrote 30 pairs" in capsys.readouterr().out


def test_alignments_are_written_beside_the_same_sentences(tmp_path):
    run(tmp_path / "plain")
    run(tmp_path / "aligned", "--alignments")
    plain, aligned = contents(tmp_path / "plain"), contents(tmp_path / "aligned")
    assert {name: text for name, text in aligned.items() if not name.endswith(".align")} == plain
    assert sorted(aligned.keys() - plain.keys()) == ["test.align", "train.align", "valid.align"]
    drawn = draw_splits(sentence_pairs(1), {"train": 30, "valid": 4, "test": 5})["valid"]
    assert aligned["valid.align"].decode() == "".join(f"{alignment}\n" for _, _, alignment in drawn)


def test_headlines_have_no_alignments(tmp_path, capsys):
    assert run(tmp_path / "new", "--corpus", "headlines", "--alignments") == 1
    message = "--alignments: headlines has none; omit the option, or take --corpus english-german"
    assert capsys.readouterr().err == f"fairseq-capsule toy-corpus: error: {message}\n"
    assert not (tmp_path / "new").exists()


def test_the_seed_is_passed_to_the_sampler(tmp_path):
    run(tmp_path / "a", "--seed", "1")
    run(tmp_path / "b", "--seed", "2")
    run(tmp_path / "c", "--seed", "2")
    assert contents(tmp_path / "a") != contents(tmp_path / "b") == contents(tmp_path / "c")


@pytest.mark.parametrize(
    "place, options, message",
    [
        ("/dev/full", (), "/dev/full: not a folder; name a folder, or a new name"),
        ("{tmp}/file", (), "{tmp}/file: not a folder; name a folder, or a new name"),
        ("{tmp}/file/in", (), "{tmp}/file: not a folder; name a folder, or a new name"),
        ("{tmp}/out", ("--train", "0"), "train: 0 sentences; ask for at least 1"),
        (
            "{tmp}/out",
            ("--train", "1000000"),
            "1000009 sentences, but the grammar makes only 1000000 without repetition; ask for fewer",
        ),
    ],
)
def test_bad_input_gives_one_clear_line(tmp_path, capsys, place, options, message):
    (tmp_path / "file").touch()
    assert run(place.format(tmp=tmp_path), *options) == 1
    error = capsys.readouterr().err
    assert error == f"fairseq-capsule toy-corpus: error: {message.format(tmp=tmp_path)}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="file: not a folder; name a folder, or a new name"):
        write_parallel(tmp_path / "file", ["en"], {})
    with pytest.raises(LabError, match="below: cannot be created: Not a directory; name another folder"):
        write_parallel(tmp_path / "file/below", ["en"], {})


def test_a_full_disk_does_not_change_the_older_corpus(tmp_path, capsys, monkeypatch):
    run(tmp_path)
    before = contents(tmp_path)

    def synchronise_until_full(descriptor, fsync=os.fsync):
        fsync(descriptor)
        if "valid.de" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", synchronise_until_full)
    assert run(tmp_path, "--seed", "2") == 1
    assert contents(tmp_path) == before
    expected = f"{tmp_path}/valid.de: not written: No space left on device; choose another folder"
    assert capsys.readouterr().err == f"fairseq-capsule toy-corpus: error: {expected}\n"
