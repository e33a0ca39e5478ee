"""The embedded corpora and `fairseq-capsule toy-corpus`: the pairs, the files that it writes, and its errors."""

import errno
import hashlib
import os

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.embedded import SIZES, draw_splits

# Of all files of a corpus, by name. Figures of the documents, of prepared folders and of checkpoints depend on them.
FINGERPRINTS = {
    "english-german": "9f0886df5acf05d71360cc5eb3db7ca668a7f38fd08b019e027cc76bb879cd48",
    "headlines": "8189258dd500c027de69955a6797a1bf2f397fd810e9f75de65cddfcbfdebea2",
}


def run(folder, *options):
    return main(["toy-corpus", str(folder), "--train", "30", "--valid", "4", "--test", "5", *options])


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("corpus, options", [("english-german", ["--alignments"]), ("headlines", [])])
def test_the_corpus_never_changes(tmp_path, corpus, options):
    assert main(["toy-corpus", str(tmp_path), "--corpus", corpus, *options]) == 0
    text = b"".join(content for _, content in sorted(contents(tmp_path).items()))
    assert hashlib.sha256(text).hexdigest() == FINGERPRINTS[corpus]


@pytest.mark.parametrize("corpus", FINGERPRINTS)
def test_the_other_splits_do_not_depend_on_the_size_of_train(corpus):
    whole, smaller = draw_splits(corpus, SIZES), draw_splits(corpus, {**SIZES, "train": 10})
    assert {split: len(pairs) for split, pairs in whole.items()} == SIZES
    assert smaller == {**whole, "train": whole["train"][:10]}


def test_alignments_are_written_beside_the_same_sentences(tmp_path, capsys):
    assert run(tmp_path / "new" / "plain") == 0
    assert "wrote 30 pairs" in capsys.readouterr().out
    run(tmp_path / "aligned", "--alignments")
    plain, aligned = contents(tmp_path / "new" / "plain"), contents(tmp_path / "aligned")
    assert sorted(plain) == ["test.de", "test.en", "train.de", "train.en", "valid.de", "valid.en"]
    assert {name: text for name, text in aligned.items() if not name.endswith(".align")} == plain
    assert sorted(aligned.keys() - plain.keys()) == ["test.align", "train.align", "valid.align"]


def test_a_full_disk_does_not_change_the_older_corpus(tmp_path, capsys, monkeypatch):
    run(tmp_path)
    before = contents(tmp_path)

    def synchronise_until_full(descriptor, fsync=os.fsync):
        fsync(descriptor)
        if "valid.de" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", synchronise_until_full)
    assert run(tmp_path, "--train", "31") == 1
    assert contents(tmp_path) == before
    assert capsys.readouterr().err == "fairseq-capsule toy-corpus: error: [Errno 28] No space left on device\n"
