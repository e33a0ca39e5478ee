"""The summarisation corpus is reproducible, and a text contains what its shorter headline says."""

import hashlib
import re
from itertools import islice

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.headlines import EVENTS, article_pairs
from fairseq_capsule_lab.corpora.splits import draw_splits

FINGERPRINT = "a45549a6e5e24f11f84b28d35f186dd3bc8bbff3e8960c2d71e1fe563c8ec8e7"


@pytest.fixture(scope="module")
def pairs():
    return list(islice(article_pairs(1), 5000))


def test_the_corpus_is_the_same_on_every_machine_and_python(pairs):
    text = "\n".join("\t".join(pair) for pair in pairs[:2000])
    assert hashlib.sha256(text.encode()).hexdigest() == FINGERPRINT
    assert list(islice(article_pairs(2), 50)) != pairs[:50]


def test_lengths_are_within_the_limits(pairs):
    assert all(25 <= len(text) <= 120 and 6 <= len(headline) <= 26 for text, headline in pairs)
    assert all(2 * len(headline) < len(text) for text, headline in pairs)


def test_texts_are_whole_sentences(pairs):
    for text, headline in pairs:
        assert text.endswith("。") and 2 <= text.count("。") <= 3
        assert "。" not in headline
        assert not re.search(r"\s|None|[{}]", text)


def test_numbers_of_the_headline_are_in_the_text(pairs):
    for text, headline in pairs:
        for number in re.findall(r"\d+(?:\.\d+)?", headline):
            assert number in text


def test_characters_are_few_and_all_in_the_training_set(pairs):
    known = set("".join(text + headline for text, headline in pairs[500:]))
    assert len(known) < 600
    assert set("".join(text for text, _ in pairs[:500])) <= known


def test_the_event_has_no_fixed_position(pairs):
    last = sum(text.split("。")[-2].startswith(("由", "据", "在", "气象台", "统计")) for text, _ in pairs)
    assert 0.05 * len(pairs) < last < 0.6 * len(pairs)


def test_there_are_enough_headlines_without_test_headlines_in_training():
    sizes = {"train": 30_000, "valid": 500, "test": 500}
    splits = draw_splits(article_pairs(1), sizes)
    headlines = {split: {headline for _, headline in pairs} for split, pairs in splits.items()}
    assert not headlines["train"] & (headlines["valid"] | headlines["test"])
    assert not headlines["valid"] & headlines["test"]
    assert {split: len(pairs) for split, pairs in splits.items()} == sizes
    assert len(EVENTS) == 10


def test_the_command_writes_texts_and_summaries(tmp_path):
    assert (
        main(["toy-corpus", str(tmp_path), "--corpus", "headlines", "--train", "9", "--valid", "1", "--test", "1"]) == 0
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        f"{split}.{language}" for split in ("train", "valid", "test") for language in ("text", "summary")
    )
