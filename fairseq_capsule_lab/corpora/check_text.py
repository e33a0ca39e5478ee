"""Checks of parallel texts, read side by side in one pass: counts, wrong lines, unknown tokens, repeated pairs."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary

from fairseq_capsule_lab.corpora.progress import progress_bar

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
    """A problem in a file.

    Attributes:
        file: the name of the file.
        line: the first line with the problem, counted from 1, or None if the problem is not in a line.
        problem: what is wrong and what to do.
        lines: how many lines have the problem.
    """

    file: str
    line: Optional[int]
    problem: str
    lines: int = 1

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.problem}" + (f" (and {self.lines - 1} more lines)" if self.lines > 1 else "")


@dataclass(frozen=True)
class Limits:
    """Limits of the checks.

    Attributes:
        longest: the maximum number of tokens in a sentence.
        most_unknown: the maximum share of unknown tokens in a text, in per cent.
        most_overlap: the maximum share of a split's pairs that are also in train, in per cent.
    """

    longest: int = 1024
    most_unknown: float = 5.0
    most_overlap: float = 1.0


@dataclass(frozen=True)
class SplitCounts:
    """The figures of a split.

    Attributes:
        pairs: the number of pairs.
        unknown: the share of unknown tokens in per cent, by language.
        overlap: the number of pairs that are also in train.
    """

    pairs: int
    unknown: dict[str, float]
    overlap: int = 0


class ParallelText:
    """Counts of a split that has a file for each language, and the problems of its lines.

    Attributes:
        files: their names.
        pairs: the number of pairs.
    """

    def __init__(self, files: Sequence[str]):
        self.files, self.pairs = files, 0
        self._tokens, self._unknown = [0] * len(files), [0] * len(files)
        self._problems: dict[tuple[int, str], list[int]] = {}  # (side, problem): first line, number of lines

    def note(self, side: int, number: int, problem: str) -> None:
        self._problems.setdefault((side, problem), [number, 0])[1] += 1

    def count(self, side: int, number: int, tokens: int, unknown: int, longest: int, empty: str = EMPTY) -> None:
        """Count the tokens of a line, and note whether it is empty or too long."""
        self._tokens[side] += tokens
        self._unknown[side] += unknown
        if not tokens:
            self.note(side, number, empty)
        elif tokens > longest:
            self.note(side, number, TOO_LONG)

    def shares(self) -> list[float]:
        """Return the share of unknown tokens of each file, in per cent."""
        return [100 * unknown / max(1, tokens) for unknown, tokens in zip(self._unknown, self._tokens)]

    def findings(self) -> Iterator[Fault]:
        for (side, problem), (line, lines) in self._problems.items():
            yield Fault(self.files[side], line, problem, lines)


def side_by_side(name: str, texts: Iterable[Iterable[Any]]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield (number, what the texts have there), with None for each text that has already ended."""
    pairs = progress_bar(zip_longest(*texts), desc=name, unit=" pairs", unit_scale=True, leave=False)
    yield from enumerate(pairs, start=1)


class TextFiles(ParallelText):
    """The files of a split, SPLIT.LANGUAGE in the folder of a stage."""

    def __init__(self, folder: Path, stage: str, split: str, languages: Iterable[str]):
        super().__init__([f"{stage}/{split}.{language}" for language in languages])
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
        while line := text.readline(LONGEST_LINE):
            yield line


def _wrong_bytes(line: bytes) -> Iterator[str]:
    if not line.endswith(b"\n"):
        yield NO_END
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        yield NOT_UTF8
        return
    yield from (problem for character, problem in WRONG_CHARACTERS.items() if character in text)


class RepeatedPairs:
    """The pairs of other splits that are also in train.

    Attributes:
        lines: split → pair → its first line in the split and in train.
    """

    def __init__(self) -> None:
        self._held_out: dict[Hashable, dict[str, int]] = {}  # pair → split → its first line
        self.lines: dict[str, dict[Hashable, tuple[int, int]]] = {}

    def see(self, split: str, number: int, pair: Hashable) -> None:
        """Take a pair. The pairs of the training set must come last."""
        if not is_train(split):
            self._held_out.setdefault(pair, {}).setdefault(split, number)
            return
        for other, line in self._held_out.get(pair, {}).items():
            self.lines.setdefault(other, {}).setdefault(pair, (line, number))


def is_train(split: str) -> bool:
    """Return whether a split is a part of the training set: `train`, `train1`, `train.en-de`."""
    return re.match(r"train\d*(\.|$)", split) is not None


class FolderCheck:
    """The checks of one folder. `findings` fills `splits` while it reads the files."""

    def __init__(self, folder: Path, limits: Limits):
        self.folder, self.limits = folder, limits
        self.splits: dict[str, SplitCounts] = {}
        self.notes: list[str] = []
        self.overlap = RepeatedPairs()

    def findings(self) -> Iterator[Fault]:
        raise NotImplementedError

    def overlaps(self, files: Mapping[str, str]) -> Iterator[Fault]:
        """Yield the splits of which too much is in train.

        Args:
            files: the file to name for each split.
        """
        for split, lines in self.overlap.lines.items():
            counts = self.splits[split] = replace(self.splits[split], overlap=len(lines))
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
