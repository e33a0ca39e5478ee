"""NIST Chinese-English, from the LDC's releases: scripts/prepare-nist-zh-en.sh."""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import compose
from fairseq_capsule_lab.corpora import recipe
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Corpus, Option, Options, Recipe
from fairseq_capsule_lab.corpora.segments import Segments, refuse_unpaired
from fairseq_capsule_lab.corpora.texts import read_text

RELEASES = ("LDC2002E18", "LDC2003E07", "LDC2003E14", "LDC2004T07", "LDC2004T08", "LDC2005T06")
EVALUATIONS = {"valid": "mt03", "test": "mt04", "test1": "mt05", "test2": "mt06"}
REFERENCES = 4
FROM = (
    "The folder of the LDC releases, which are licensed and never downloaded. Files may lie in subfolders. Training "
    "text, sentence-aligned, UTF-8, one sentence per line: LDC2002E18.zh and LDC2002E18.en, likewise LDC2003E07, "
    "LDC2003E14, LDC2004T07 (Hansards), LDC2004T08, LDC2005T06. Test sets, as in LDC2010T11, T12, T14 and T17: "
    "mt03_chinese_evalset*.xml and mt03_chinese_evalset*-ref.xml with four translations, likewise mt04, mt05, mt06."
)


def _corpus(options: Options) -> Corpus:
    return Corpus(("zh", "en"), partial(_raw, folder=Path(options["from"])))


def _raw(raw: RawTexts, folder: Path) -> None:
    for release in RELEASES:
        pair = _licensed_file(folder, f"{release}.zh"), _licensed_file(folder, f"{release}.en")
        raw.append(*pair)
        raw.note(*pair)
    for split, name in EVALUATIONS.items():
        chinese = _licensed_file(folder, f"{name}_chinese_evalset*.xml", "*-ref.xml")
        english = _licensed_file(folder, f"{name}_chinese_evalset*-ref.xml")
        suffixes = ["zh", "en", *(f"en{number}" for number in range(1, REFERENCES))]
        segments = list(zip(*_read_evaluation(chinese, english)))
        composed = [tuple(map(compose, texts)) for texts in segments]
        raw.note_composed(chinese.name, sum(one != other for one, other in zip(segments, composed)))
        for suffix, lines in zip(suffixes, zip(*composed)):
            with open(raw.folder / f"{split}.{suffix}", "w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(f"{line}\n" for line in lines)
        raw.note(chinese, english)


def _licensed_file(folder: Path, pattern: str, other: str = "") -> Path:
    """Return the first file anywhere below the folder whose name matches `pattern` and not `other`."""
    files = (Path(place, name) for place, _, names in os.walk(folder, followlinks=True) for name in names)
    found = [file for file in files if fnmatchcase(file.name, pattern) and not fnmatchcase(file.name, other)]
    if not found:
        raise UserError(f"--from {folder}: {pattern} is missing: get it from the LDC under its licence (see --help)")
    return min(found, key=os.fsencode)


def _read_evaluation(source: Path, references: Path) -> Iterator[list[str]]:
    """Yield the segments of the source, and those of each translation in the order of the source."""
    chinese, english = read_text(source), read_text(references)
    if not isinstance(chinese, Segments) or not isinstance(english, Segments):
        raise UserError(f"{source} and {references}: no <seg> in one; give files in mteval's format")
    text, translations = chinese.text(is_source=True), english.references
    if len(translations) != REFERENCES:
        problem = f"{len(translations)} translations, not {REFERENCES}; give the file of all references"
        raise UserError(f"{references}: {problem}")
    yield list(text.values())
    for translator, translation in translations.items():
        refuse_unpaired((source, f"{references}, translation {translator}"), (text, translation))
        yield [translation[key] for key in text]


ZH_EN = Recipe(
    script="prepare-nist-zh-en.sh",
    title="Prepare NIST Chinese-English, 1.09M pairs, from your LDC files, and binarise it for fairseq, in OUT/bin.",
    corpus=_corpus,
    options=[
        Option("from", Path, "DIR", FROM, required=True),
        *recipe.options_of_archives(merges=30_000, share="separate", longest=100),
    ],
    notes="Chinese: control characters are dropped, jieba segments the words. English: punctuation is normalised, "
    "unprintable characters are dropped, words are tokenised (XML escapes kept) and lower-cased, because the scores "
    "ignore case.",
    sets="train, valid (MT03), test (MT04), test1 (MT05), test2 (MT06)",
    results={
        "OUT/raw": "the original text; its four references for sacreBLEU are test.en, test.en1, test.en2 and test.en3, "
        "and likewise for the other sets. OUT/tokenised, OUT/clean, OUT/bpe: its later stages, with the first of them",
        **recipe.CODES,
    },
)
