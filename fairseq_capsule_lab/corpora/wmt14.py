"""WMT14 English-German and English-French: scripts/prepare-wmt14-en-de.sh and scripts/prepare-wmt14-en-fr.sh."""

import re
from functools import partial

from capsule_routing.text import split_into_words
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import ARCHIVES, LIMIT, Corpus, Options, of_archives, one_of

WMT10, WMT13, WMT14 = (f"https://www.statmt.org/wmt{year}" for year in (10, 13, 14))
EUROPARL, CRAWL = f"{WMT13}/training-parallel-europarl-v7.tgz", f"{WMT13}/training-parallel-commoncrawl.tgz"
UN, NEWS = f"{WMT13}/training-parallel-un.tgz", f"{WMT14}/training-parallel-nc-v9.tgz"
GIGA = f"{WMT10}/training-giga-fren.tar"
GERMAN = {EUROPARL: "europarl-v7.de-en.{}", CRAWL: "commoncrawl.de-en.{}", NEWS: "news-commentary-v9.de-en.{}"}
FRENCH = {
    EUROPARL: "europarl-v7.fr-en.{}",
    CRAWL: "commoncrawl.fr-en.{}",
    UN: "undoc.2000.fr-en.{}",
    NEWS: "news-commentary-v9.fr-en.{}",
    GIGA: "giga-fren.release2.fixed.{}.gz",
}
NOTES = (
    "Punctuation is normalised, unprintable characters are dropped, words are tokenised (split at hyphens, XML escapes "
    "kept). Case is kept."
)
SETS = "train, valid, test (newstest2014, 3,003 pairs)"


def _corpus(options: Options, language: str, train: dict[str, str], test: str) -> Corpus:
    one_of(options, "valid", "newstest2013", "newstest2012+2013")
    raw = partial(_raw, valid=re.findall("[0-9]+", options["valid"]), train=train, test=test)
    change = partial(split_into_words, settings={"script": f"prepare-wmt14-en-{language}.sh"})
    return Corpus(("en", language), raw, [change])


def _raw(raw: RawTexts, valid: list[str], train: dict[str, str], test: str) -> None:
    for address, member in train.items():
        raw.train(member, address)
    for year in valid:
        raw.hold_out("valid", f"{WMT14}/dev.tgz", f"newstest{year}.{{}}")
    raw.hold_out("test", f"{WMT14}/test-full.tgz", test)


EN_DE = of_archives(
    script="prepare-wmt14-en-de.sh",
    title="WMT14 English-German, 4.5M pairs, from the raw archives",
    corpus=partial(_corpus, language="de", train=GERMAN, test="newstest2014-deen-{side}.{}.sgm"),
    options={
        "from DIR": f"{ARCHIVES} training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, "
        "training-parallel-nc-v9.tgz, dev.tgz and test-full.tgz (of WMT14)",
        "limit N": LIMIT,
        "valid SET": "newstest2013 (default), or newstest2012+2013 as in CapsNMT",
    },
    # The limits keep nearly all pairs, as the papers' 4.5M.
    defaults={"valid": "newstest2013", "max-length": "250", "ratio": "9"},
    papers=": Duan et al., GRET, Dynamic Past and Future; CapsNMT has 50,000",
    notes=NOTES,
    sets=SETS,
)
EN_FR = of_archives(
    script="prepare-wmt14-en-fr.sh",
    title="WMT14 English-French, 36M pairs, from the raw archives",
    corpus=partial(_corpus, language="fr", train=FRENCH, test="newstest2014-fren-{side}.{}.sgm"),
    options={
        "from DIR": f"{ARCHIVES} training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, "
        "training-parallel-un.tgz, training-parallel-nc-v9.tgz, training-giga-fren.tar, dev.tgz and test-full.tgz (of "
        "WMT14)",
        "limit N": LIMIT,
        "valid SET": "newstest2012+2013 (default, as in CapsNMT), or newstest2013",
    },
    # The ratio keeps 36M of 40.8M pairs.
    defaults={"valid": "newstest2012+2013", "merges": "50000", "max-length": "250", "ratio": "1.5"},
    papers=": CapsNMT; fairseq's own recipe has 40,000",
    notes=NOTES,
    sets=SETS,
)
