"""WMT16 English-Romanian: scripts/prepare-wmt16-en-ro.sh."""

from pathlib import Path

from fairseq_capsule_lab.corpora import recipe
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Corpus, Option, Options, Recipe

WMT16 = "https://data.statmt.org/wmt16/translation-task"
OPUS = "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses"
FROM = (
    f"{recipe.ARCHIVES} training-parallel-ep-v8.tgz, en-ro.txt.zip (SETIMES of OPUS, Moses format), "
    "dev-romanian-updated.tgz and test.tgz (of WMT16)."
)
DIACRITICS = (
    "Those of the Romanian text. Removing them is common for Romanian-English. With Romanian as the target, scores "
    "with and without diacritics differ by many points."
)


def _corpus(options: Options) -> Corpus:
    return Corpus(("en", "ro"), _raw)


def _raw(raw: RawTexts) -> None:
    raw.train("europarl-v8.ro-en.{}", f"{WMT16}/training-parallel-ep-v8.tgz")
    raw.train("SETIMES.en-ro.{}", f"{OPUS}/en-ro.txt.zip")
    raw.hold_out("valid", f"{WMT16}/dev-romanian-updated.tgz", "newsdev2016-enro-{side}.{}.sgm")
    raw.hold_out("test", f"{WMT16}/test.tgz", "newstest2016-enro-{side}.{}.sgm")


EN_RO = Recipe(
    script="prepare-wmt16-en-ro.sh",
    title="Prepare WMT16 English-Romanian, 0.6M pairs, from the raw archives, and binarise it for fairseq, in OUT/bin.",
    corpus=_corpus,
    options=[
        Option("from", Path, "DIR", FROM),
        Option("diacritics", ("remove", "keep"), "", DIACRITICS, "remove"),
        *recipe.options_of_archives(merges=32_000, share="joint", longest=80),
    ],
    notes="Punctuation is normalised, unprintable characters are dropped, Romanian letters are normalised (comma "
    "below, not cedilla), diacritics are removed, words are tokenised (XML escapes kept). Case is kept.",
    results={"OUT/raw": recipe.RAW, **recipe.CODES},
    sets="train, valid (newsdev2016, 1,999 pairs), test (newstest2016, 1,999 pairs)",
)
