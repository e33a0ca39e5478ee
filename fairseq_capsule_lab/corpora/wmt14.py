"""WMT14 English-German and English-French: scripts/prepare-wmt14-en-de.sh and scripts/prepare-wmt14-en-fr.sh."""

import re
from collections.abc import Sequence
from functools import partial

from fairseq_capsule_lab.corpora import filters, help_texts
from fairseq_capsule_lab.corpora.parallel import Filter
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Options, Recipe, one_of

WMT10, WMT13, WMT14 = (f"https://www.statmt.org/wmt{year}" for year in (10, 13, 14))
OPTIONS = ("from", "limit", "valid", "merges", "bpe", "share", "max-length", "ratio", "codes", "dict")


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


def _raw(raw: RawTexts, options: Options, train: dict[str, str], test: str) -> None:
    for address, member in train.items():
        raw.train(address, member)
    for year in re.findall("[0-9]+", options["valid"]):
        raw.hold_out("valid", f"{WMT14}/dev.tgz", f"newstest{year}.{{}}")
    raw.hold_out("test", f"{WMT14}/test-full.tgz", test)


def _filters(options: Options) -> Sequence[Filter]:
    return [partial(filters.words, hyphens=True)]


def _check(options: Options) -> Options:
    return one_of(options, "valid", "newstest2013", "newstest2012+2013")


_TEXT = """\
Punctuation is normalised, unprintable characters are dropped, words are tokenised (split at hyphens, XML escapes kept).
Case is kept."""
_SETS = f"""\
train, valid, test (newstest2014, 3,003 pairs)
{help_texts.RAW}"""

EN_DE = Recipe(
    script="prepare-wmt14-en-de.sh",
    help=help_texts.of_archives(
        usage="prepare-wmt14-en-de.sh",
        title="WMT14 English-German, 4.5M pairs, from the raw archives",
        options=f"""\
{help_texts.ARCHIVES}
                 training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, training-parallel-nc-v9.tgz,
                 dev.tgz and test-full.tgz (of WMT14)
  --valid SET    newstest2013 (default), or newstest2012+2013 as in CapsNMT""",
        merges="32,000: Duan et al., GRET, Dynamic Past and Future; CapsNMT has 50,000",
        limits=help_texts.lengths(250, "9"),
        text=_TEXT,
        sets=_SETS,
    ),
    languages=("en", "de"),
    options=OPTIONS,
    raw=partial(_raw, train=GERMAN, test="newstest2014-deen-{side}.{}.sgm"),
    filters=_filters,
    # The limits keep nearly all pairs, as the papers' 4.5M.
    defaults={"valid": "newstest2013", "max-length": "250", "ratio": "9"},
    check=_check,
)
EN_FR = Recipe(
    script="prepare-wmt14-en-fr.sh",
    help=help_texts.of_archives(
        usage="prepare-wmt14-en-fr.sh",
        title="WMT14 English-French, 36M pairs, from the raw archives",
        options=f"""\
{help_texts.ARCHIVES}
                 training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, training-parallel-un.tgz,
                 training-parallel-nc-v9.tgz, training-giga-fren.tar, dev.tgz and test-full.tgz (of WMT14)
  --valid SET    newstest2012+2013 (default, as in CapsNMT), or newstest2013""",
        merges="50,000: CapsNMT; fairseq's own recipe has 40,000",
        limits=help_texts.lengths(250, "1.5"),
        text=_TEXT,
        sets=_SETS,
    ),
    languages=("en", "fr"),
    options=OPTIONS,
    raw=partial(_raw, train=FRENCH, test="newstest2014-fren-{side}.{}.sgm"),
    filters=_filters,
    # The ratio keeps 36M of 40.8M pairs.
    defaults={"valid": "newstest2012+2013", "merges": "50000", "max-length": "250", "ratio": "1.5"},
    check=_check,
)
