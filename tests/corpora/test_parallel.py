"""What the stages of a preparation share: filters on all cores, and the counts of words."""

import io
import os
import random
import sys
from concurrent.futures import BrokenExecutor
from functools import partial

import pytest
from subword_nmt.learn_bpe import learn_bpe

from fairseq_capsule_lab.corpora import parallel, subwords
from fairseq_capsule_lab.corpora.parallel import filter_folder
from fairseq_capsule_lab.corpora.subwords import learn_subwords


@pytest.fixture
def log(tmp_path):
    with open(tmp_path / "log", "wb") as stream:
        yield stream


def named(language, line):
    return f"{language} {line}"


def test_blocks_keep_their_order(tmp_path, log, monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 999)
    lines = [f"line {number}" for number in range(12_000)] + ["", "", "last"]
    (tmp_path / "from").mkdir()
    for split in ("train", "test"):
        for language in ("en", "de"):
            (tmp_path / "from" / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    for name in ("test.en1", "SHA256SUMS", "PARTS"):  # no text, or a further reference
        (tmp_path / "from" / name).write_text("no\n")
    (tmp_path / "from/valid.en").touch()
    filter_folder(named, tmp_path / "from", tmp_path / "to", log)
    for name in ("train.en", "train.de", "test.en", "test.de"):
        expected = "".join(f"{name[-2:]} {line}\n" for line in lines)
        assert (tmp_path / "to" / name).read_text() == expected
    assert {file.name for file in (tmp_path / "to").iterdir()} == {
        *("train.en", "train.de", "test.en", "test.de", "valid.en")
    }


def failing(language, line, how):
    how()
    return line


@pytest.mark.parametrize(
    "how, error", [(partial(int, "x"), ValueError), (sys.exit, SystemExit), (partial(os._exit, 9), BrokenExecutor)]
)
def test_a_filter_that_fails_is_noticed(tmp_path, log, how, error):
    (tmp_path / "from").mkdir()
    (tmp_path / "from/train.en").write_text("one\ntwo\n")
    with pytest.raises(error):
        filter_folder(partial(failing, how=how), tmp_path / "from", tmp_path / "to", log)


def test_codes_learnt_in_blocks_equal_those_of_the_whole_text(tmp_path, log):
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdeé&;", k=rng.randint(1, 6))) for _ in range(300)]
    lines = [" ".join(rng.choices(words, k=rng.randint(0, 9))) for _ in range(11_000)]
    texts = [tmp_path / f"train.{language}" for language in ("en", "de")]
    for text in texts:
        text.write_text("".join(f"{line}\n" for line in lines))
    learn_subwords(texts, tmp_path / "learnt", "subword-nmt", 200, log)
    expected = io.StringIO()
    learn_bpe([f"{line}\n" for line in 2 * lines], expected, 200)
    assert (tmp_path / "learnt").read_text() == expected.getvalue()


def test_merges_are_not_learnt_from_protected_words(tmp_path, log):
    lines = {"with": "<BT> a cat and a hat\n", "without": "a cat and a hat\n"}
    for name, line in lines.items():
        (tmp_path / f"{name}.en").write_text(9 * line)
        learn_subwords([tmp_path / f"{name}.en"], tmp_path / name, "subword-nmt", 9, log, ["<BT>"])
    assert (tmp_path / "with").read_text() == (tmp_path / "without").read_text()


@pytest.mark.parametrize("most", [200, 400])  # a sample, and the whole text
def test_pieces_learnt_in_two_processes_are_the_same(tmp_path, log, monkeypatch, most):
    """SentencePiece draws its own sample with another seed in each process, whatever seed it is given."""
    monkeypatch.setattr(subwords, "MOST_LINES", most)
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdeé&;", k=rng.randint(1, 6))) for _ in range(300)]
    texts = [tmp_path / f"train.{language}" for language in ("en", "de")]
    for text in texts:
        text.write_text("".join(" ".join(rng.choices(words, k=9)) + "\n" for _ in range(200)))
    for name in ("first", "second"):  # each in a process of its own
        learn_subwords(texts, tmp_path / name, "sentencepiece", 90, log)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
