"""WMT17 Chinese-English: scripts/prepare-wmt17-zh-en.sh."""

import re
import sys
from functools import partial
from pathlib import Path

from capsule_routing.text import split_into_words
from fairseq_capsule_lab.corpora.raw import RawTexts, file_below
from fairseq_capsule_lab.corpora.recipe import ARCHIVES, LIMIT, Corpus, Options, folder_of, of_archives
from fairseq_capsule_lab.corpora.texts import copy_similar_pairs
from fairseq_capsule_lab.errors import LabError

WMT17 = "https://data.statmt.org/wmt17/translation-task"
UN = "https://stuncorpusprod.blob.core.windows.net/corpusfiles"
_words = partial(split_into_words, settings={"script": "prepare-wmt17-zh-en.sh"})
CWMT = ("casia2015", "casict2015", "datum", *(f"Book{number}" for number in range(1, 21)), "NEU")


def _corpus(options: Options) -> Corpus:
    if not re.fullmatch(r"(nc|un|cwmt)(,(nc|un|cwmt))*", options["parts"]):
        raise LabError(f"--parts takes some of nc,un,cwmt, not '{options['parts']}'")
    if "cwmt" in options["parts"]:
        if not options["cwmt"]:
            problem = "CWMT is available only on registration"
            raise LabError(f"{problem}: give its folder by --cwmt DIR, or leave it out by --parts nc,un")
        options["cwmt"] = folder_of("--cwmt", options["cwmt"])
    return Corpus(("zh", "en"), partial(_raw, options=options), [_words])


def _raw(raw: RawTexts, options: Options) -> None:
    parts = options["parts"].split(",")
    if "nc" in parts:
        raw.train("news-commentary-v12.zh-en.{}", f"{WMT17}/training-parallel-nc-v12.tgz")
    if "un" in parts:
        raw.train("UNv1.0.en-zh.{}", *(f"{UN}/UNv1.0.en-zh.tar.gz.{part}" for part in ("00", "01")))
    for name in CWMT if "cwmt" in parts else ():
        folder = Path(options["cwmt"])
        chinese, english = file_below(folder, f"{name}_c[hn].txt"), file_below(folder, f"{name}_en.txt")
        if not chinese or not english:
            raise LabError(f"--cwmt {folder}: {name}_ch.txt (or _cn) or {name}_en.txt of CWMT is missing")
        raw.append(chinese, english)
        raw.note(chinese, english)
    raw.hold_out("valid1", f"{WMT17}/dev.tgz", "newsdev2017-zhen-{side}.{}.sgm")
    _short_valid(raw, int(options["max-length"] or sys.maxsize))
    raw.hold_out("test", f"{WMT17}/test.tgz", "newstest2017-zhen-{side}.{}.sgm")


def _short_valid(raw: RawTexts, longest: int) -> None:
    """Write valid, the pairs of valid1 that are short enough."""
    files = raw.files("words")
    for file, text in zip(files, raw.files("valid1")):
        with open(text, encoding="utf-8", newline="\n") as lines, open(file, "w", encoding="utf-8") as stream:
            language = file.suffix[1:]
            stream.writelines(f"{_words(language, line.removesuffix(chr(10)))}\n" for line in lines)
    copy_similar_pairs(files, raw.files("valid"), longest, instead=raw.files("valid1"))
    for file in files:
        file.unlink()


ZH_EN = of_archives(
    script="prepare-wmt17-zh-en.sh",
    title="WMT17 Chinese-English, 24M raw pairs, from the raw archives",
    corpus=_corpus,
    options={
        "from DIR": f"{ARCHIVES} training-parallel-nc-v12.tgz, UNv1.0.en-zh.tar.gz.00 and .01, dev.tgz and test.tgz "
        "(of WMT17)",
        "cwmt DIR": "the folder of CWMT's files (casia2015_ch.txt, casia2015_en.txt, …; subfolders are searched). They "
        "are available only on registration and never downloaded",
        "parts LIST": "some of nc,un,cwmt (all three). No public recipe gives the 20.6M pairs of Duan et al. or the "
        "7.5M of GRET, which fit nc,cwmt best",
        "limit N": LIMIT,
    },
    defaults={"parts": "nc,un,cwmt", "share": "separate", "max-length": "49", "ratio": "9"},
    notes="Chinese: control characters are dropped, jieba segments the words. English: punctuation is normalised, "
    "unprintable characters are dropped, words are tokenised (XML escapes kept), case is kept. --max-length also holds "
    "for validation pairs (49, as Duan et al. take under 50; GRET: 100).",
    sets="train, valid (the short enough pairs of newsdev2017), valid1 (all of it), test (newstest2017)",
)
