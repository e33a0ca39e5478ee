"""Checks of parallel texts, read side by side in one pass: counts, wrong lines, unknown tokens, repeated pairs."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary

from fairseq_capsule_lab.corpora.parallel import progress_bar

LONGEST_LINE = 1 << 24  # in bytes; a longer line is read in parts, and is not text
EMPTY = "empty: drop the line in every language"
TOO_LONG = "too long: drop the line in every language, or give the model more --max-source-positions"
NO_END = "no line feed at its end: it may be cut short: copy it again, or prepare it again"
NOT_UTF8 = "not UTF-8: convert the file"
WRONG_CHARACTERS = {
    "\0": "a NUL character: drop the line in every language",
    "\r": "a stray carriage return: replace it by a space",
    "\ufffd": "a replacement character: it comes from a wrong conversion: convert again, or drop the line in every "
    "language",
}


@dataclass(frozen=True)
class Fault:
    """A problem in a file."""

    file: str
    line: Optional[int]  # the first one with the problem, counted from 1, or None if it is not in a line
    problem: str  # what is wrong and what to do
    lines: int = 1  # how many have the problem

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.problem}" + (f" (and {self.lines - 1} more lines)" if self.lines > 1 else "")


@dataclass(frozen=True)
class Limits:
    """Limits of the checks."""

    longest: int = 1024  # tokens in a sentence
    most_unknown: float = 5.0  # per cent of the tokens in a text
    most_overlap: float = 1.0  # per cent of a split's pairs that are also in train


@dataclass
class SplitCounts:
    """The figures of a split."""

    pairs: int
    unknown: dict[str, float]  # per cent of the tokens, by language
    overlap: int = 0  # pairs that are also in train


class ParallelText:
    """Counts of a split that has a file for each language, and the problems of its lines.

    A line may have up to `longest` tokens; without any it has the problem `empty`.
    """

    def __init__(self, files: Sequence[str], longest: int = 0, empty: str = EMPTY):
        self.files, self.longest, self.empty = files, longest, empty
        self.pairs = 0
        self._tokens, self._unknown = [0] * len(files), [0] * len(files)
        self._problems: dict[tuple[int, str], list[int]] = {}  # (side, problem): first line, number of lines

    def note(self, side: int, number: int, problem: str) -> None:
        self._problems.setdefault((side, problem), [number, 0])[1] += 1

    def count(self, side: int, number: int, tokens: int, unknown: int) -> None:
        """Count the tokens of a line, and note whether it is empty or too long."""
        self._tokens[side] += tokens
        self._unknown[side] += unknown
        if not 0 < tokens <= self.longest:
            self.note(side, number, TOO_LONG if tokens else self.empty)

    def counts(self, languages: Iterable[str]) -> SplitCounts:
        shares = [100 * unknown / max(1, tokens) for unknown, tokens in zip(self._unknown, self._tokens)]
        return SplitCounts(self.pairs, dict(zip(languages, shares)))

    def findings(self) -> Iterator[Fault]:
        for (side, problem), (line, lines) in self._problems.items():
            yield Fault(self.files[side], line, problem, lines)


def side_by_side(name: str, texts: Iterable[Iterable[Any]]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield (number, what the texts have there), with None for each text that has already ended."""
    pairs = progress_bar(zip_longest(*texts), desc=name, unit=" pairs", unit_scale=True, leave=False)
    yield from enumerate(pairs, start=1)


class TextFiles(ParallelText):
    """The files of a split, SPLIT.LANGUAGE in the folder of a stage."""

    def __init__(self, folder: Path, stage: str, split: str, languages: Iterable[str], longest: int):
        super().__init__([f"{stage}/{split}.{language}" for language in languages], longest)
        self._paths = [folder / file for file in self.files]
        self._lines = [0] * len(self.files)
        self._missing = [file for file, path in zip(self.files, self._paths) if not path.is_file()]

    def read(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield (number, lines) of each pair, and note wrong characters."""
        if self._missing:
            return
        name = self.files[0].rpartition(".")[0]
        for number, pair in side_by_side(name, map(_lines, self._paths)):
            self._lines = [count + (line is not None) for count, line in zip(self._lines, pair)]
            if None in pair:
                continue
            self.pairs = number
            for side, line in enumerate(pair):
                for problem in _wrong_bytes(line):
                    self.note(side, number, problem)
            yield number, tuple(line.removesuffix(b"\n").decode(errors="replace") for line in pair)

    def is_sound(self) -> bool:
        """Return whether the texts are parallel and have no wrong characters."""
        wrong = {NOT_UTF8, *WRONG_CHARACTERS.values()} & {problem for _, problem in self._problems}
        return self.pairs > 0 and len(set(self._lines)) == 1 and not wrong

    def findings(self) -> Iterator[Fault]:
        other = "other stages may have it" if self._missing == self.files else "but the other language is there"
        for file in self._missing:
            yield Fault(file, None, f"missing, {other}: prepare it again")
        yield from super().findings()
        most, least = max(self._lines), min(self._lines)
        if most > least:
            shorter = self.files[self._lines.index(least)]
            problem = f"no such line in {shorter}: {most} and {least} lines are not parallel; prepare it again"
            yield Fault(self.files[self._lines.index(most)], least + 1, problem)
        elif not self._missing and not self.pairs:
            yield Fault(self.files[0], None, "no lines: prepare it again")


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as text:
        yield from iter(lambda: text.readline(LONGEST_LINE), b"")


def _wrong_bytes(line: bytes) -> Iterator[str]:
    if not line.endswith(b"\n"):
        yield NO_END
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        yield NOT_UTF8
        return
    yield from (problem for character, problem in WRONG_CHARACTERS.items() if character in text)


def is_train(split: str) -> bool:
    """Return whether a split is a part of the training set: `train`, `train1`, `train.en-de`."""
    return re.match(r"train\d*(\.|$)", split) is not None


class FolderCheck:
    """The check of a folder.

    Attributes:
        splits: the figures of each split; filled by `findings`.
        notes: one line for each thing that could not be checked, and for each text of which much was left out.
    """

    def __init__(self, folder: Path, limits: Limits):
        self.folder, self.limits = folder, limits
        self.splits: dict[str, SplitCounts] = {}
        self.notes: list[str] = []
        self._held_out: dict[Hashable, dict[str, int]] = {}  # pair → split → its first line
        self._repeated: dict[str, dict[Hashable, tuple[int, int]]] = {}  # split → pair → its first line there, in train

    def findings(self) -> Iterator[Fault]:
        """Read the files, and yield their problems."""
        raise NotImplementedError

    def see(self, split: str, number: int, pair: Hashable) -> None:
        """Take a pair, to know which are in train too. The pairs of the training set must come last."""
        if not is_train(split):
            self._held_out.setdefault(pair, {}).setdefault(split, number)
            return
        for other, line in self._held_out.get(pair, {}).items():
            self._repeated.setdefault(other, {}).setdefault(pair, (line, number))

    def overlaps(self, files: Mapping[str, str]) -> Iterator[Fault]:
        """Yield the splits of which too much is in train, with the file to name for each."""
        for split, lines in self._repeated.items():
            counts = self.splits[split]
            counts.overlap = len(lines)
            if 100 * len(lines) > self.limits.most_overlap * counts.pairs:
                line, first = min(lines.values())
                problem = f"the pair is also in train, line {first}, so scores on {split} measure memorisation: "
                yield Fault(files[split], line, f"{problem}drop it in one", len(lines))


def dictionary_order(file: str, dictionary: Dictionary) -> Iterator[Fault]:
    """Check that the counts of a dictionary do not increase from line to line."""
    counts = dictionary.count[dictionary.nspecial :]
    rises = [line for line, (count, after) in enumerate(zip(counts, counts[1:]), start=2) if after > count]
    if rises:
        problem = "a larger count than the line before, but fairseq-preprocess sorts by count: "
        yield Fault(file, rises[0], f"{problem}copy the dictionary again", len(rises))
