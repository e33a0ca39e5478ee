"""Check of a folder of fairseq-preprocess without its text, in constant memory."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import IndexedDataset

from fairseq_capsule.data import binarised
from fairseq_capsule.data.binarised import CONTROL_SYMBOLS, IN_TEXT, REMEDY, BinarisedText, BrokenFile
from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule_lab.corpora.check_folder import (
    EMPTY,
    OTHER_RUNS,
    Counted,
    FolderCheck,
    Limits,
    is_train,
    side_by_side,
)
from fairseq_capsule_lab.errors import LabError

NEEDED = ("train", "valid")  # fairseq-train does not start without these splits
# SPLIT.SOURCE-TARGET.LANGUAGE with or without .idx, or SPLIT.idx for a single language without a name (--only-source).
NAMED = re.compile(
    r"(?P<split>[^.]+)\.(?P<pair>(?P<source>[^.-]+)-(?P<target>[^.-]+))\.(?P<lang>[^.]+?)(?P<index>\.idx)?"
)
NAMELESS = re.compile(r"(?P<split>[^.]+)\.idx")
# Errors of fairseq's reader for damaged files in the older format.
READING_ERRORS = (AssertionError, LookupError, MemoryError, OSError, OverflowError, ValueError, TypeError, struct.error)
UNSEEN = (
    "there is no text with the binarised data: not checked are broken characters, whether the tokens are those of the "
    "text, and whether the references are the same sentences"
)


class BinarisedFolder(FolderCheck):
    """What fairseq-preprocess made, without its text. A language is None if it has no name."""

    def __init__(self, folder: Path, limits: Limits):
        super().__init__(folder, limits)
        self.dictionaries: dict[Optional[str], Dictionary] = {
            path.name[len("dict.") : -len(".txt")] or None: read_dictionary(path)
            for path in sorted([*folder.glob("dict.*.txt"), *folder.glob("dict.txt")])
        }
        self.texts = self._texts()
        if not self.dictionaries or not self.texts:
            files = "dict.LANG.txt and SPLIT.SOURCE-TARGET.LANG.idx"
            problem = "neither a folder that scripts/prepare-*.sh made nor one that fairseq-preprocess made"
            raise LabError(f"{folder}: {problem}, with {files}; name one")
        self.notes += [UNSEEN, *self._absent()]

    def _texts(self) -> dict[str, list[tuple[Path, Optional[str]]]]:
        """Return the files and languages of each split. Train comes last, as `count` requires.

        If the folder has several language pairs, the names of the splits contain the pair.
        """
        texts: dict[tuple[str, str], list[tuple[Path, Optional[str]]]] = {}
        for path in sorted(self.folder.iterdir()):
            named = NAMED.fullmatch(path.name)
            nameless = NAMELESS.fullmatch(path.name)
            if named and named["lang"] in (named["source"], named["target"]):
                texts.setdefault((named["split"], named["pair"]), []).append((path, named["lang"]))
            elif nameless:
                texts.setdefault((nameless["split"], ""), []).append((path, None))
        several = len({pair for _, pair in texts}) > 1
        ordered = sorted(texts, key=lambda key: (is_train(key[0]), *key))
        return {f"{split}.{pair}" if several and pair else split: texts[split, pair] for split, pair in ordered}

    def _absent(self) -> Iterator[str]:
        """Yield notes on missing parts that a training needs but a test set does not."""
        names = (NAMED.fullmatch(path.name) for files in self.texts.values() for path, _ in files)
        languages = {language for name in names if name for language in (name["source"], name["target"])}
        for language in sorted(languages - self.dictionaries.keys()):
            yield f"there is no dict.{language}.txt, as with --only-source: {language} was not checked"
        for split in NEEDED:
            if not any(name.startswith(split) for name in self.texts):
                yield f"there is no {split} set: a training needs one, but a translation does not"

    def run(self) -> None:
        for language, dictionary in self.dictionaries.items():
            self.note_order(_dictionary_name(language), dictionary)
        for split, files in self.texts.items():
            self._check(split, files)
        self.note_overlaps({split: files[0][0].name for split, files in self.texts.items()})

    def _check(self, split: str, files: list[tuple[Path, Optional[str]]]) -> None:
        if name := NAMED.fullmatch(files[0][0].name):
            absent = {name["source"], name["target"]}.difference(language for _, language in files)
            for language in absent & self.dictionaries.keys():
                place = f"{name['split']}.{name['pair']}.{language}{name['index'] or ''}"
                self.note(place, f"missing, but the other language is there: {REMEDY}")
        sound = {}
        for path, language in files:
            dictionary = self.dictionaries.get(language)
            if dictionary is None:
                self.note(path.name, f"its {_dictionary_name(language)} is missing: copy it here")
                continue
            try:
                sound[path.name] = language or "text", dictionary, _sentences_in(path, dictionary)
            except BrokenFile as error:
                self.note(error.path.name, error.problem)
        if not sound:
            return
        names = list(sound)
        languages, dictionaries, sentences = zip(*sound.values())

        def counts() -> Iterator[Counted]:
            number = 0
            try:
                for pair in side_by_side(split, sentences):
                    if None in pair:
                        longer = next(side for side, sentence in enumerate(pair) if sentence is not None)
                        problem = f"no such sentence in {names[pair.index(None)]}, which has {number}; they are not "
                        self.note(names[longer], f"{problem}parallel: {REMEDY}", number + 1)
                        break
                    number += 1
                    bare = [row[:-1] if row[-1:] == [own.eos()] else row for row, own in zip(pair, dictionaries)]
                    for name, row in zip(names, bare):
                        if min(row, default=len(CONTROL_SYMBOLS)) < len(CONTROL_SYMBOLS):
                            self.note_line(name, f"contains {CONTROL_SYMBOLS[min(row)]}: {IN_TEXT}", number)
                    whole = tuple(map(tuple, bare)) if len(names) == len(files) else None  # or a language is missing
                    yield whole, [(len(tokens), tokens.count(own.unk())) for tokens, own in zip(bare, dictionaries)]
                if not number:
                    self.note(names[0], f"no sentences: {REMEDY}")
            except BrokenFile as error:
                self.note(error.path.name, error.problem)

        texts = list(zip(languages, names))
        for _, file, share in self.count(split, texts, counts(), f"{EMPTY} and binarise again"):
            self.note(file, f"{share:.2f}% of its tokens are <unk>: {OTHER_RUNS}; prepare again")


def _dictionary_name(language: Optional[str]) -> str:
    return f"dict.{language}.txt" if language else "dict.txt"


def _sentences_in(path: Path, dictionary: Dictionary) -> Iterator[list[int]]:
    """Return the sentences of a file of any --dataset-impl, as numbers of tokens.

    An incomplete file is a `BrokenFile`; for the older formats when the sentence is read.
    """
    if path.suffix != ".idx":
        return _raw_sentences(path, dictionary)
    with open(path, "rb") as stream:
        if stream.read(len(binarised.OLD_MAGIC)) == binarised.OLD_MAGIC:
            return _old_sentences(path, dictionary)
    tokens = BinarisedText(path)
    tokens.require_known_tokens(len(dictionary))
    return sentences_of(tokens)


def sentences_of(text: BinarisedText) -> Iterator[list[int]]:
    """Yield the sentences of binarised text in fairseq's present format (mmap)."""
    start = 0
    for first in range(0, text.sentences, binarised.SENTENCES):
        ends = np.cumsum(text.sizes(first, binarised.SENTENCES), dtype=np.int64).tolist()
        tokens = text.piece(start, ends[-1]).tolist()
        yield from (tokens[begin:end] for begin, end in zip([0, *ends], ends))
        start += ends[-1]


def _old_sentences(path: Path, dictionary: Dictionary) -> Iterator[list[int]]:
    """Yield the sentences of fairseq's older format (lazy, cached)."""
    try:
        sentences = IndexedDataset(str(path.with_suffix("")), fix_lua_indexing=True)
        sizes = sentences.sizes
        tokens = int(sentences.data_offsets[-1])
        # fairseq reads a truncated index without an error, and the missing part is then uninitialised memory.
        index_size = 48 + 8 * (2 * (len(sentences) + 1) + len(sizes))
        data_size = tokens * int(sentences.element_size)
        if (path.stat().st_size, path.with_suffix(".bin").stat().st_size) != (index_size, data_size):
            raise ValueError("size of a file")
        if len(sizes) != len(sentences) or min(sizes, default=0) < 0 or sum(map(int, sizes)) != tokens:
            raise ValueError("sizes")
        for number in range(len(sentences)):
            if sentences[number].dim() != 1:
                raise ValueError("shape")
            sentence = sentences[number].tolist()
            if sentence and not 0 <= min(sentence) <= max(sentence) < len(dictionary):
                raise BrokenFile(path, f"sentence {number + 1} has tokens that are not in the dictionary: {REMEDY}")
            yield sentence
    except READING_ERRORS as error:
        problem = f"incomplete, or not the index of its .bin file ({type(error).__name__})"
        raise BrokenFile(path, f"{problem}: {REMEDY}") from error


def _raw_sentences(path: Path, dictionary: Dictionary) -> Iterator[list[int]]:
    """Yield the sentences of a text (raw), line by line: fairseq's own reader keeps all of them in memory."""
    with open(path, encoding="utf-8", errors="replace", newline="\n") as lines:
        yield from ([dictionary.index(word) for word in line.split()] for line in lines)
