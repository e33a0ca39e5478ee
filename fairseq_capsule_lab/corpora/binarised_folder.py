"""Check of a folder of fairseq-preprocess without its text, in constant memory."""

import re
import struct
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import IndexedDataset
from tqdm import tqdm

from fairseq_capsule.data.binarised import OLD_MAGIC, PIECE, REMEDY, BinarisedText, BrokenFile
from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule_lab.corpora.findings import Finding
from fairseq_capsule_lab.corpora.folder_checks import Checked, Limits, Split, dictionary_order
from fairseq_capsule_lab.corpora.text_checks import Overlap
from fairseq_capsule_lab.errors import LabError

# SPLIT.SOURCE-TARGET.LANGUAGE with or without .idx, or SPLIT.idx for a single language without a name (--only-source).
TEXT = re.compile(
    r"(?P<split>[^.]+)\.(?P<pair>(?P<source>[^.-]+)-(?P<target>[^.-]+))\.(?P<lang>[^.]+?)(?P<index>\.idx)?"
)
NAMELESS = re.compile(r"(?P<split>[^.]+)\.idx")
# Errors of fairseq's reader for damaged files in the older format.
READING_ERRORS = (AssertionError, LookupError, MemoryError, OSError, OverflowError, ValueError, TypeError, struct.error)
UNSEEN = (
    "there is no text with the binarised data: not checked are broken characters, whether the tokens are "
    "those of the text, and whether the references are the same sentences"
)


class File(NamedTuple):
    """One language of a split. `language` is None if it has no name."""

    path: Path
    language: Optional[str]


def check_binarised_folder(folder: Path, limits: Limits) -> Checked:
    """Check a folder that fairseq-preprocess made.

    Raises:
        LabError: the folder is not such a folder, or a dictionary in it is broken.
    """
    check = _BinarisedFolderCheck(folder, limits)
    return Checked(list(check.findings()), check.splits, tuple(check.notes))


class _BinarisedFolderCheck:
    """The checks of one folder. `findings` fills `splits` while it reads the files.

    `notes` has one line for each thing that cannot be checked.
    """

    def __init__(self, folder: Path, limits: Limits):
        self.folder, self.limits = folder, limits
        self.splits: Dict[str, Split] = {}
        self.dictionaries: Dict[Optional[str], Dictionary] = {
            path.name[len("dict.") : -len(".txt")] or None: read_dictionary(path)
            for path in sorted([*folder.glob("dict.*.txt"), *folder.glob("dict.txt")])
        }
        self._texts = self._found()
        if not self.dictionaries or not self._texts:
            raise LabError(
                f"{folder}: neither a folder that scripts/prepare-*.sh made nor one that fairseq-preprocess made, with "
                "dict.LANG.txt and SPLIT.SOURCE-TARGET.LANG.idx; name one"
            )
        self.notes = [UNSEEN, *self._absent()]

    def findings(self) -> Iterator[Finding]:
        for language, dictionary in self.dictionaries.items():
            yield from dictionary_order(_dictionary_name(language), dictionary)
        overlap = Overlap()
        for name, files in self._texts.items():
            yield from self._split(name, files, overlap)
        for name, lines in overlap.lines.items():
            self.splits[name] = replace(self.splits[name], overlap=len(lines))
            if 100 * len(lines) > self.limits.most_overlap * self.splits[name].pairs:
                line, there = min(lines.values())
                problem = (
                    f"the pair is also in train, line {there}, so scores on {name} measure memorisation: drop it in one"
                )
                yield Finding(self._texts[name][0].path.name, line, problem, len(lines))

    def _found(self) -> Dict[str, List[File]]:
        """Return the files of each split. Train comes last, as `Overlap` requires.

        If the folder has several language pairs, the names of the splits contain the pair.
        """
        found: Dict[Tuple[str, str], List[File]] = {}
        for path in sorted(self.folder.iterdir()):
            named, nameless = TEXT.fullmatch(path.name), NAMELESS.fullmatch(path.name)
            if named and named["lang"] in (named["source"], named["target"]):
                found.setdefault((named["split"], named["pair"]), []).append(File(path, named["lang"]))
            elif nameless:
                found.setdefault((nameless["split"], ""), []).append(File(path, None))
        several = len({pair for _, pair in found}) > 1
        ordered = sorted(found, key=lambda key: (is_train(key[0]), *key))
        return {f"{split}.{pair}" if several and pair else split: found[split, pair] for split, pair in ordered}

    def _absent(self) -> Iterator[str]:
        """Yield notes on missing parts that a training needs but a test set does not."""
        pairs = {
            match["pair"]
            for files in self._texts.values()
            for file in files
            if (match := TEXT.fullmatch(file.path.name))
        }
        languages = {language for pair in pairs for language in pair.split("-")}
        for language in sorted(languages - {name for name in self.dictionaries if name}):
            yield f"there is no dict.{language}.txt, as with --only-source: {language} was not checked"
        for split in ("train", "valid"):
            if not any(name.startswith(split) for name in self._texts):
                yield f"there is no {split} set: a training needs one, but a translation does not"

    def _split(self, name: str, files: List[File], overlap: Overlap) -> Iterator[Finding]:
        if files[0].language:
            yield from self._missing(files)
        texts, languages = [], []
        for path, language in files:
            if language not in self.dictionaries:
                yield Finding(path.name, None, f"its {_dictionary_name(language)} is missing: copy it here")
                continue
            dictionary = self.dictionaries[language]
            try:
                texts.append((path.name, _opened(path, dictionary), dictionary))
                languages.append(language or "text")
            except BrokenFile as error:
                yield Finding(error.path.name, None, error.problem)
        if not texts:
            return
        found: Dict[Tuple[int, str], List[int]] = {}  # (side, problem) → first line, number of lines
        tokens, unknown, lines = [0] * len(texts), [0] * len(texts), 0
        try:
            bar = tqdm(desc=name, unit=" pairs", unit_scale=True, delay=2, disable=None, leave=False)
            for number, pair in enumerate(zip_longest(*(sentences for _, sentences, _ in texts)), start=1):
                bar.update()
                if any(sentence is None for sentence in pair):
                    short = next(side for side, sentence in enumerate(pair) if sentence is None)
                    longer = next(side for side, sentence in enumerate(pair) if sentence is not None)
                    problem = (
                        f"no such sentence in {texts[short][0]}, which has {lines}; they are not parallel: {REMEDY}"
                    )
                    yield Finding(texts[longer][0], number, problem)
                    break
                lines = number
                if len(texts) == len(files):  # otherwise a language of the pair is missing
                    same = tuple(each.astype(np.int64).tobytes() for each in pair)  # the types of the files may differ
                    overlap.see("train" if is_train(name) else name, number, same)
                for side, sentence in enumerate(pair):
                    tokens[side] += len(sentence)
                    unknown[side] += int(np.count_nonzero(sentence == texts[side][2].unk()))
                    if wrong := self._problem(sentence):
                        found.setdefault((side, wrong), [number, 0])[1] += 1
            else:
                if not lines:
                    yield Finding(texts[0][0], None, f"no sentences: {REMEDY}")
        except BrokenFile as error:
            yield Finding(error.path.name, None, error.problem)
        for (side, problem), (line, count) in found.items():
            yield Finding(texts[side][0], line, problem, count)
        shares = {text: 100 * count / max(1, all_) for text, count, all_ in zip(languages, unknown, tokens)}
        self.splits[name] = Split(lines, shares)
        for (file, _, _), share in zip(texts, shares.values()):
            if share > self.limits.most_unknown:
                problem = (
                    f"{share:.2f}% of its tokens are <unk>: codes and dictionary are of different runs; prepare again"
                )
                yield Finding(file, None, problem)

    def _missing(self, files: List[File]) -> Iterator[Finding]:
        match = TEXT.fullmatch(files[0].path.name)
        assert match
        for language in (match["source"], match["target"]):
            if language in self.dictionaries and language not in {file.language for file in files}:
                place = f"{match['split']}.{match['pair']}.{language}{match['index'] or ''}"
                yield Finding(place, None, f"missing, but the other language is there: {REMEDY}")

    def _problem(self, sentence: np.ndarray) -> Optional[str]:
        if not len(sentence):
            return "empty: drop the line in every language and binarise again"
        if len(sentence) > self.limits.longest:
            return "too long: drop the line in every language, or give the model more --max-source-positions"
        return None


def is_train(split: str) -> bool:
    """Whether a split is a part of the training set: `train`, `train1`, `train.en-de`."""
    return re.match(r"train\d*(\.|$)", split) is not None


def _dictionary_name(language: Optional[str]) -> str:
    return f"dict.{language}.txt" if language else "dict.txt"


def _opened(path: Path, dictionary: Dictionary) -> Iterator[np.ndarray]:
    """Return the sentences of a file of any --dataset-impl, as token numbers without the end of sentence.

    Raises:
        BrokenFile: the file is incomplete. For the older formats this is raised when the sentence is read.
    """
    if path.suffix != ".idx":
        return _of_text(path, dictionary)
    with open(path, "rb") as stream:
        old = stream.read(len(OLD_MAGIC)) == OLD_MAGIC
    if old:
        return _of_old(path, dictionary)
    text = BinarisedText(path)
    text.require_known_tokens(len(dictionary))
    return _of_new(text, dictionary)


def _of_new(text: BinarisedText, dictionary: Dictionary) -> Iterator[np.ndarray]:
    place = 0
    for start in range(0, text.sentences, PIECE // 64):
        sizes = text.sizes(start, PIECE // 64)
        tokens = text.piece(place, int(sizes.sum(dtype=np.int64)))
        place += len(tokens)
        for sentence in np.split(tokens, np.cumsum(sizes)[:-1]):
            yield _without_end(sentence, dictionary)


def _of_old(path: Path, dictionary: Dictionary) -> Iterator[np.ndarray]:
    try:
        sentences = IndexedDataset(str(path.with_suffix("")), fix_lua_indexing=True)
        if len(sentences.sizes) != len(sentences) or min(sentences.sizes, default=0) < 0:
            raise ValueError("sizes")
        # fairseq reads a truncated index without an error, and the missing part is then uninitialised memory.
        if path.stat().st_size != 48 + 8 * (2 * (len(sentences) + 1) + len(sentences.sizes)):
            raise ValueError("index")
        needed = int(sentences.data_offsets[-1]) * int(sentences.element_size)
        if (
            sum(map(int, sentences.sizes)) != int(sentences.data_offsets[-1])
            or path.with_suffix(".bin").stat().st_size != needed
        ):
            raise ValueError("sizes")
        for number in range(len(sentences)):
            sentence = sentences[number].numpy()
            if len(sentence) and not 0 <= sentence.min() <= sentence.max() < len(dictionary):
                raise BrokenFile(path, f"sentence {number + 1} has tokens that are not in the dictionary: {REMEDY}")
            yield _without_end(sentence, dictionary)
    except READING_ERRORS as error:
        raise BrokenFile(
            path, f"incomplete, or not the index of its .bin file ({type(error).__name__}): {REMEDY}"
        ) from error


def _of_text(path: Path, dictionary: Dictionary) -> Iterator[np.ndarray]:
    """Yield the sentences of a file of --dataset-impl raw."""
    with open(path, encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            yield np.array([dictionary.index(word) for word in line.split()], dtype=np.int64)


def _without_end(sentence: np.ndarray, dictionary: Dictionary) -> np.ndarray:
    return sentence[:-1] if len(sentence) and sentence[-1] == dictionary.eos() else sentence
