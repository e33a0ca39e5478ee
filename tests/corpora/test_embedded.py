"""The embedded corpora and `fairseq-capsule toy-corpus`: the pairs, the files that it writes, and its errors."""

import errno
import hashlib
import os

import pytest
from sacremoses import MosesTokenizer

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.embedded import SIZES, draw_splits, read_pairs

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
def test_no_source_occurs_twice_and_no_target_of_the_test_set_is_in_another_one(corpus):
    sources = [pair[0] for pair in read_pairs(corpus)]
    assert len(set(sources)) == len(sources)
    targets = {split: {pair[1] for pair in pairs} for split, pairs in draw_splits(corpus, SIZES).items()}
    assert not targets["train"] & (targets["valid"] | targets["test"]) and not targets["valid"] & targets["test"]


@pytest.mark.parametrize("corpus", FINGERPRINTS)
def test_the_other_splits_do_not_depend_on_the_size_of_train(corpus):
    whole, smaller = draw_splits(corpus, SIZES), draw_splits(corpus, {**SIZES, "train": 10})
    assert {split: len(pairs) for split, pairs in whole.items()} == SIZES
    assert smaller == {**whole, "train": whole["train"][:10]}


def test_links_point_to_words_of_the_tokenised_text():
    """Only commas have no translation: the English one before `and`, the German ones around clauses."""
    tokenise = {language: MosesTokenizer(language).tokenize for language in ("en", "de")}
    for source, target, alignment in draw_splits("english-german", SIZES)["test"]:
        english, german = tokenise["en"](source, escape=False), tokenise["de"](target, escape=False)
        links = [tuple(map(int, link.split("-"))) for link in alignment.split()]
        unlinked = set(range(len(english))) - {i for i, _ in links}, set(range(len(german))) - {j for _, j in links}
        assert [max(i for i, _ in links), max(j for _, j in links)] == [len(english) - 1, len(german) - 1]
        assert {english[i] for i in unlinked[0]} | {german[j] for j in unlinked[1]} <= {","}, (source, target)


def test_alignments_are_written_beside_the_same_sentences(tmp_path, capsys):
    assert run(tmp_path / "new" / "plain") == 0
    assert "wrote 30 pairs" in capsys.readouterr().out
    run(tmp_path / "aligned", "--alignments")
    plain, aligned = contents(tmp_path / "new" / "plain"), contents(tmp_path / "aligned")
    assert sorted(plain) == ["test.de", "test.en", "train.de", "train.en", "valid.de", "valid.en"]
    assert {name: text for name, text in aligned.items() if not name.endswith(".align")} == plain
    assert sorted(aligned.keys() - plain.keys()) == ["test.align", "train.align", "valid.align"]


def test_headlines_have_no_alignments(tmp_path, capsys):
    assert run(tmp_path / "new", "--corpus", "headlines", "--alignments") == 1
    message = "--alignments: headlines has none; omit the option, or take --corpus english-german"
    assert capsys.readouterr().err == f"fairseq-capsule toy-corpus: error: {message}\n"
    assert not (tmp_path / "new").exists()


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
