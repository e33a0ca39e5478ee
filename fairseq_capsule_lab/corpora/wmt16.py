"""WMT16 English-Romanian: scripts/prepare-wmt16-en-ro.sh."""

from functools import partial

from capsule_routing.text.preparation import split_into_words
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import ARCHIVES, LIMIT, Corpus, Options, of_archives, one_of

WMT16 = "https://data.statmt.org/wmt16/translation-task"
OPUS = "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses"


def _corpus(options: Options) -> Corpus:
    one_of(options, "diacritics", "remove", "keep")
    change = partial(split_into_words, settings={"script": EN_RO.script, "diacritics": options["diacritics"]})
    return Corpus(("en", "ro"), _raw, [change])


def _raw(raw: RawTexts) -> None:
    raw.train("europarl-v8.ro-en.{}", f"{WMT16}/training-parallel-ep-v8.tgz")
    raw.train("SETIMES.en-ro.{}", f"{OPUS}/en-ro.txt.zip")
    raw.hold_out("valid", f"{WMT16}/dev-romanian-updated.tgz", "newsdev2016-enro-{side}.{}.sgm")
    raw.hold_out("test", f"{WMT16}/test.tgz", "newstest2016-enro-{side}.{}.sgm")


EN_RO = of_archives(
    script="prepare-wmt16-en-ro.sh",
    title="WMT16 English-Romanian, 0.6M pairs, from the raw archives",
    corpus=_corpus,
    options={
        "from DIR": f"{ARCHIVES} training-parallel-ep-v8.tgz, en-ro.txt.zip (SETIMES of OPUS, Moses format), "
        "dev-romanian-updated.tgz and test.tgz (of WMT16)",
        "diacritics HOW": "remove (default, common for Romanian-English) or keep those of the Romanian text. With "
        "Romanian as the target, scores with and without diacritics differ by many points",
        "limit N": LIMIT,
    },
    defaults={"diacritics": "remove", "max-length": "80", "ratio": "9"},
    notes="Punctuation is normalised, unprintable characters are dropped, Romanian letters are normalised (comma "
    "below, not cedilla), diacritics are removed, words are tokenised (XML escapes kept). Case is kept.",
    sets="train, valid (newsdev2016, 1,999 pairs), test (newstest2016, 1,999 pairs)",
)
