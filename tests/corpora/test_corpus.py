"""The whole corpus is reproducible, varied and well formed, and no sentence occurs twice."""

import hashlib
import os
import re
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora import splits as corpora
from fairseq_capsule_lab.corpora.splits import Dice, distinct, draw_splits
from fairseq_capsule_lab.corpora.toy.sampler import LONGEST, SHORTEST, sentence_pairs
from tests.test_house import imported_names

SIZES = {"train": 19_000, "valid": 500, "test": 500}
FINGERPRINT = "5986678b4082fde9004bbc6467dfa3733294958d9507d1a30d7d434081cd545a"


@pytest.fixture(scope="module")
def splits():
    return draw_splits(sentence_pairs(1), SIZES)


@pytest.fixture(scope="module")
def pairs(splits):
    return [pair for split in splits.values() for pair in split]


PRINT = """
import itertools
from fairseq_capsule_lab.corpora.toy.sampler import sentence_pairs
print(list(itertools.islice(sentence_pairs(3), 300)))
"""


def fingerprint(seed, count):
    text = "\n".join("\t".join(pair) for pair in islice(sentence_pairs(seed), count))
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_corpus_is_the_same_on_every_machine_and_python():
    assert fingerprint(1, 2000) == FINGERPRINT


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_corpus_does_not_depend_on_the_hash_seed(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", PRINT]
    printed = subprocess.check_output(command, env=environment, encoding="utf-8")
    assert printed == f"{list(islice(sentence_pairs(3), 300))}\n"


def test_another_seed_gives_another_corpus():
    assert fingerprint(1, 10) != fingerprint(2, 10)


def test_splits_have_the_requested_sizes(splits):
    assert {split: len(pairs) for split, pairs in splits.items()} == SIZES


def test_no_source_sentence_occurs_twice(pairs):
    sources = [pair[0] for pair in pairs]
    assert len(set(sources)) == len(sources)


def test_the_test_set_does_not_depend_on_the_size_of_train(splits):
    smaller = draw_splits(sentence_pairs(1), {**SIZES, "train": 10})
    assert (smaller["test"], smaller["valid"]) == (splits["test"], splits["valid"])
    assert smaller["train"] == splits["train"][:10]


@pytest.mark.parametrize("words", [1, 2, 1000])
def test_each_sentence_has_one_translation(words, monkeypatch):
    """With one or two words in each class, most sentences recur, and different structures give the same sentence."""

    def choose(self, items):
        return items[int(self._random() * min(words, len(items)))]

    monkeypatch.setattr(Dice, "choose", choose)
    monkeypatch.setattr(Dice, "choose_early", choose)
    translations = {}
    for source, target, _ in islice(sentence_pairs(5), 8_000):
        assert translations.setdefault(source, target) == target


def test_the_corpus_has_a_few_thousand_words(pairs):
    english = {word for source, *_ in pairs for word in re.findall(r"[\w-]+", source.lower())}
    german = {word for _, target, _ in pairs for word in re.findall(r"\w+", target)}
    assert 1_200 <= len(english) <= 4_000
    assert 4_000 <= len(german) <= 10_000


def test_most_but_not_all_words_of_the_test_set_are_in_the_training_set(splits):
    known = {word for _, target, _ in splits["train"] for word in target.split()}
    words = [word for _, target, _ in splits["test"] for word in target.split()]
    assert 0.005 < sum(word not in known for word in words) / len(words) < 0.1


def test_no_target_of_the_test_set_is_in_the_training_set(splits):
    assert not {target for _, target, _ in splits["test"]} & {target for _, target, _ in splits["train"]}


def test_links_point_to_words_of_the_tokenised_text(pairs):
    """Only commas have no translation: the English one before `and`, the German ones around clauses."""
    tokenise = {language: MosesTokenizer(language).tokenize for language in ("en", "de")}
    for source, target, alignment in pairs[:2000]:
        english, german = tokenise["en"](source, escape=False), tokenise["de"](target, escape=False)
        links = [tuple(map(int, link.split("-"))) for link in alignment.split()]
        assert links == sorted(set(links))
        unlinked = set(range(len(english))) - {i for i, _ in links}, set(range(len(german))) - {j for _, j in links}
        assert [max(i for i, _ in links), max(j for _, j in links)] == [len(english) - 1, len(german) - 1]
        assert {english[i] for i in unlinked[0]} | {german[j] for j in unlinked[1]} <= {","}, (source, target)


def test_lengths_are_within_the_limits(pairs):
    lengths = [len(source.split()) for source, *_ in pairs]
    assert min(lengths) >= SHORTEST and max(lengths) <= LONGEST
    assert 10 <= sum(lengths) / len(lengths) <= 12


def test_sentences_are_well_written(pairs):
    for source, target, _ in pairs:
        assert re.fullmatch(r"[A-Z][A-Za-z',-]*( [A-Za-z'-]+,?)*[.?]", source), source
        assert re.fullmatch(r"[A-ZÄÖÜ][A-Za-zÄÖÜäöüß]*( [A-Za-zÄÖÜäöüß]+,?)*[.?]", target.replace(", ", " ")), target
        assert source[-1] == target[-1]


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w, (der|die|das|den|dem|denen) ",
        r"\w, um .* zu \w+en\.$",
        r"^(Weil|Obwohl|Wenn|Bevor|Sobald) .*, (sieht|hat|wird|ist|war) ",
        r" \w+t .* (an|ein|aus|auf|ab|zu|mit|weg)\.$",
        r" ist .* \w+t worden",
        r" (ins|im|zum|zur|vom|beim) ",
        r" (kein|keine|keinen) ",
        r"\?$",
        r"\w+(chen|lein)\b",
        r"\w+undzwanzig ",
    ],
)
def test_every_phenomenon_is_common(pairs, pattern):
    assert sum(bool(re.search(pattern, target)) for _, target, _ in pairs) > len(pairs) * 0.002


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"train": 0, "test": 1}, "train: 0 sentences; ask for at least 1"),
        ({"train": 1, "test": -2}, "test: -2 sentences; ask for at least 1"),
        (
            {"train": 10**7, "test": 1},
            "10000001 sentences, but the grammar makes only 1000000 without repetition; ask for fewer",
        ),
    ],
)
def test_impossible_sizes_are_refused(sizes, message):
    with pytest.raises(UserError) as refused:
        draw_splits(sentence_pairs(1), sizes)
    assert str(refused.value) == message


def test_too_many_sentences_are_refused():
    pairs = cycle([("a", "A"), ("b", "B"), ("c", "C")])
    with pytest.raises(UserError, match="^train: 5 sentences, but the grammar has only 2 left; ask for fewer$"):
        draw_splits(pairs, {"train": 5, "test": 1})


def test_distinct_keeps_the_first_pair_of_each_source():
    assert list(distinct([("a", "A"), ("a", "X"), ("b", "B")])) == [("a", "A"), ("b", "B")]


def test_the_embedded_corpora_import_only_the_standard_library():
    pythons_own = {
        "collections",
        "contextlib",
        "dataclasses",
        "functools",
        "itertools",
        "os",
        "pathlib",
        "random",
        "re",
        "typing",
    }
    folder = Path(corpora.__file__).parent
    files = [*folder.glob("*/*.py"), *(folder / f"{name}.py" for name in ("headlines", "splits"))]
    for file in files:
        allowed = pythons_own | {"fairseq_capsule", "fairseq_capsule_lab"}
        assert {name.split(".")[0] for name in imported_names(file)} <= allowed, file
