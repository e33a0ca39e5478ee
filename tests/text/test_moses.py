"""The words of Moses are those of sacremoses, to the byte."""

import functools
import random
import re
from pathlib import Path

import pytest
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from capsule_routing.text.preparation import moses, printable

PARALLEL = Path(__file__).parents[2] / "examples/parallel"
LANGUAGES = ("en", "de", "fr", "it", "es", "cs", "ro", "fi", "ru", "zh", "hi")
# What rules of Moses look for: at the ends of chunks, between them, and in numbers and abbreviations.
PARTS = [
    *"()[]{}<>.!?:;,%&|/\\@#$€_=+*^~-'`´‘’‚\"„“”«»–—…º½²١ß",
    *("''", "...", "..", "--", "n't", "'s", "nº", "DOTMULTI", "THISISPROTECTED000"),
    *("\u00a0", "\u200b", "\u00ad", "\ufeff", "\t", "\x07", "\r"),
    *"a x Word words Ünder über U.S. e.g z.B Mr No Nr bzw 1 9 3.5 1,000".split(),
    *"l'eau don't o'clock co-op школа 中文 テスト 한국 ไทย हिन्दी ș Ţ".split(),
]


tokeniser_of = functools.cache(MosesTokenizer)


def nasty_line(rng):
    chunks = ("".join(rng.choices(PARTS, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 8)))
    return " ".join(chunks)


@pytest.mark.parametrize("drops_controls, splits_hyphens", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("normalises", [True, False])
@pytest.mark.parametrize("language", LANGUAGES)
def test_words_are_those_of_sacremoses(language, normalises, drops_controls, splits_hyphens):
    normaliser = MosesPunctNormalizer(language, post_remove_control_chars=drops_controls)
    tokeniser = tokeniser_of(language)
    ours = moses(language, normalises, drops_controls, splits_hyphens)

    def expected(line):
        if normalises:
            spaced = line.translate(str.maketrans("\t\v\f", "   ")) if drops_controls else line
            line = normaliser.normalize(f"{spaced}\n")
        return tokeniser.tokenize(line, return_str=True, aggressive_dash_splits=splits_hyphens)

    rng = random.Random(language)
    lines = [nasty_line(rng) for _ in range(60)]
    text = PARALLEL / f"train.{language}"
    lines += text.read_text(encoding="utf-8").splitlines()[:100] if text.exists() else []
    for line in lines:
        line = line if drops_controls else printable(line)
        for _ in range(2):  # the second time from what is remembered
            assert ours.words(line) == expected(line), line


@pytest.mark.parametrize("line", ["I saw Mr. Smith (again), twice.", "„Ja“, sagte er."])
def test_what_is_remembered_needs_no_sacremoses(line, monkeypatch):
    ours = moses("en")
    words = ours.words(line)
    monkeypatch.setattr(ours, "_words_of_line", None)
    assert ours.words(line) == words


MARKS = "\u0301\u0300\u0323\u0328"
# Around letters with marks: what the rules of Moses look for on both sides of a letter.
AROUND = [*"_,'’.:;-`/&%*()[]", "...", " ", " ", "'s", "1", "9", "a", "B", "中", "x", "Mr", "z.B"]


@pytest.mark.parametrize("splits_hyphens", [False, True])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_letter_with_marks_is_a_letter_like_any_other(language, splits_hyphens):
    """Moses separates marks for which Unicode has no letter. Without them, the words are those of sacremoses."""
    rng = random.Random(language)
    normaliser, tokeniser = MosesPunctNormalizer(language), tokeniser_of(language)
    ours = moses(language, splits_hyphens=splits_hyphens)
    for _ in range(50):
        letters = [rng.choice("oeXm2") + "".join(rng.choices(MARKS, k=rng.randint(1, 2))) for _ in range(5)]
        line = printable("".join(part + rng.choice(letters) for part in rng.choices(AROUND, k=rng.randint(2, 9))))
        plain = normaliser.normalize(without_marks(line) + "\n")
        words = ours.words(line)
        assert without_marks(words) == tokeniser.tokenize(
            plain, return_str=True, aggressive_dash_splits=splits_hyphens
        ), line
        assert re.findall(f".[{MARKS}]+", words) == re.findall(f".[{MARKS}]+", line)


def without_marks(text):
    return "".join(character for character in text if character not in MARKS)


def test_a_line_may_have_more_letters_with_marks_than_moses_has_stand_ins_of_their_kind():
    marks = [chr(number) for number in range(0x0300, 0x0370)]
    line = " ".join(f"o{first}{second}" for first in marks[:15] for second in marks[:10])
    assert moses("en").words(line) == line and moses("en").words("\u2c30 o\u0300\u0323") == "\u2c30 o\u0300\u0323"
