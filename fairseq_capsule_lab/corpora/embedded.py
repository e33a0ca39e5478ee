"""The embedded corpora: English sentences with German translations, and short Chinese news with headlines.

Each is a file beside this one. A line is a pair: source, target and, of the English-German corpus, the links of the
tokenised words as `0-0 1-2`, separated by tabs. A grammar drew the English-German pairs: every English sentence has
exactly one translation. A model has to learn the order of the German words (verbs second, last or first), agreement
(gender, case, number) and single words for several English ones (compounds, numbers, contractions).

A Chinese text has two or three sentences. One tells the event, the others have other numbers and names. The headline
states who, what and how much of the event in fewer characters. A model has to find the event, copy names and numbers,
and learn the short words for the long words.

The programs that drew the pairs are in the history of this repository, at commit ba7bb18.
"""

import bz2
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora import recipe
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Corpus, Option, Options, Recipe
from fairseq_capsule_lab.files import replacing

SIZES = {"train": 30_000, "valid": 500, "test": 500}

Pair = tuple[str, ...]  # source, target and, of the English-German corpus, links


def read_pairs(corpus: str) -> Iterator[Pair]:
    """Yield the pairs of `english-german` or `headlines`. No source occurs twice."""
    with bz2.open(Path(__file__).with_name(f"{corpus}.tsv.bz2"), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield tuple(line.rstrip("\n").split("\t"))


def draw_splits(corpus: str, sizes: Mapping[str, int]) -> dict[str, list[Pair]]:
    """Return the first pairs of a corpus as splits. Too few pairs are a UserError.

    The splits are taken from the last to the first: if `train` is first, its size does not change the other splits. No
    split has a target of a later split, so the training set has no target of the test set.
    """
    pairs = read_pairs(corpus)
    drawn: dict[str, list[Pair]] = {}
    known: set[str] = set()
    for split, size in reversed(list(sizes.items())):
        drawn[split] = list(islice((pair for pair in pairs if pair[1] not in known), size))
        if len(drawn[split]) < size:
            raise UserError(f"{split}: {size} pairs, but the corpus has only {len(drawn[split])} left; ask for fewer")
        known.update(pair[1] for pair in drawn[split])
    return drawn


def write_parallel(folder: Path, languages: Sequence[str], splits: Mapping[str, Sequence[Pair]]) -> None:
    """Write the files `SPLIT.LANGUAGE` in UTF-8, one sentence per line.

    The files get their names after all are complete, so files of an older corpus are never mixed with new ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for split, sentences in splits.items():
            for language, lines in zip(languages, zip(*sentences)):
                stream = stack.enter_context(replacing(folder / f"{split}.{language}"))
                stream.writelines(f"{line}\n".encode() for line in lines)
                stream.flush()
                os.fsync(stream.fileno())  # a full disk is found before a file gets its name


def _write_raw(raw: RawTexts, corpus: str, sizes: Mapping[str, int]) -> None:
    """Write the splits, and note their files as sources. Links get their own folder."""
    splits = draw_splits(corpus, sizes)
    write_parallel(raw.folder, raw.languages, splits)
    if corpus == "english-german":
        links = {split: [pair[2:] for pair in pairs] for split, pairs in splits.items()}
        write_parallel(raw.folder / "alignments", ["align"], links)
    for language in raw.languages:
        raw.note(*sorted(raw.folder.glob(f"*.{language}")))


def _settings(options: Options) -> dict[str, str]:
    """Return settings. The seed is the one that drew the pairs."""
    return {**{split: str(options[split]) for split in SIZES}, "seed": "1"}


def _toy(options: Options) -> Corpus:
    options["merges"] = 2500
    sizes = {split: options[split] for split in SIZES}
    raw = partial(_write_raw, corpus="english-german", sizes=sizes)
    return Corpus(("en", "de"), raw, {"grammar": "2", **_settings(options)}, bound=())


def _headlines(options: Options) -> Corpus:
    sizes = {split: options[split] for split in SIZES}
    raw = partial(_write_raw, corpus="headlines", sizes=sizes)
    return Corpus(("text", "summary"), raw, _settings(options), bound=(), vocabulary=3500)


OPTIONS = [Option(split, int, "N", f"Pairs in {split}.", size) for split, size in SIZES.items()]

TOY = Recipe(
    script="prepare-toy.sh",
    title="Write the embedded English-German corpus and binarise it for fairseq, in OUT/bin. Nothing is downloaded.",
    corpus=_toy,
    options=OPTIONS,
    notes="There are 31,000 pairs. Punctuation is normalised, words are tokenised (XML escapes kept), case is kept. "
    "Joint BPE of 2,500 merges, joint dictionary.",
    results={
        "OUT/raw": "the text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages",
        "OUT/raw/alignments": "SPLIT.align: the words of OUT/tokenised that translate each other, as 0-0 1-2, source "
        "and target, from 0",
        **recipe.CODES,
    },
)
HEADLINES = Recipe(
    script="prepare-headlines.sh",
    title="Write the embedded summarisation corpus, short Chinese news with headlines, and binarise it for fairseq, in "
    "OUT/bin. Nothing is downloaded.",
    corpus=_headlines,
    options=OPTIONS,
    notes="There are 31,000 pairs. The tokens are characters. Source and target are called `text` and `summary` and "
    "share a dictionary.",
    results={"OUT/raw": "the text and references for ROUGE; OUT/characters: its next stage; OUT/dict.txt"},
)
