"""What the checks of data folders share: faults, counts of tokens, pairs that are also in the training set."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary

from fairseq_capsule_lab.corpora.parallel import progress_bar

EMPTY = "empty: drop the line in every language"
OTHER_RUNS = "codes and dictionary are of different runs, or the training text is too small for this text"
TOO_LONG = "too long: drop the line in every language, or give the model more --max-source-positions"
# What identifies a pair, None if it has no translation; the numbers of tokens and of unknown tokens of each language.
Counted = tuple[Hashable, Sequence[tuple[int, int]]]


@dataclass
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


class FolderCheck:
    """The check of a folder. `run` reads its files in one pass, and fills the attributes.

    Attributes:
        faults: what is wrong, in the order of finding.
        splits: the figures of each split.
        notes: one line for each thing that could not be checked, and for each text of which much was left out.
    """

    def __init__(self, folder: Path, limits: Limits):
        self.folder, self.limits = folder, limits
        self.faults: list[Fault] = []
        self.splits: dict[str, SplitCounts] = {}
        self.notes: list[str] = []
        self._faulty_texts: dict[tuple[str, str], Fault] = {}  # by file and problem
        self._held_out: dict[Hashable, dict[str, int]] = {}  # pair → split → its first line
        self._repeated: dict[str, dict[Hashable, tuple[int, int]]] = {}  # split → pair → its first line there, in train

    def run(self) -> None:
        raise NotImplementedError

    def note(self, file: str, problem: str, line: Optional[int] = None, lines: int = 1) -> None:
        """Note a problem of a file."""
        self.faults.append(Fault(file, line, problem, lines))

    def note_line(self, file: str, problem: str, line: int) -> None:
        """Note a problem of a line of a text, or count a further line with it."""
        if fault := self._faulty_texts.get((file, problem)):
            fault.lines += 1
        else:
            self.note(file, problem, line)
            self._faulty_texts[file, problem] = self.faults[-1]

    def note_order(self, file: str, dictionary: Dictionary) -> None:
        """Note a dictionary whose counts increase from line to line."""
        counts = dictionary.count[dictionary.nspecial :]
        rises = [line for line, (count, after) in enumerate(zip(counts, counts[1:]), start=2) if after > count]
        if rises:
            problem = "a larger count than the line before, but fairseq-preprocess sorts by count: "
            self.note(file, f"{problem}copy the dictionary again", rises[0], len(rises))

    def count(
        self, split: str, files: Sequence[tuple[str, str]], pairs: Iterable[Counted], empty: str = EMPTY
    ) -> list[tuple[str, str, float]]:
        """Count the tokens of a split, and note the lines that are empty or too long. The splits of train come last.

        `files` are languages and their files. Return those with too many unknown tokens, and their share in per cent.
        """
        number = 0
        tokens = Counter[str]()
        unknown = Counter[str]()
        for number, (pair, counts) in enumerate(pairs, start=1):
            if pair is not None and not is_train(split):
                self._held_out.setdefault(pair, {}).setdefault(split, number)
            for other, line in self._held_out.get(pair, {}).items() if is_train(split) else ():
                self._repeated.setdefault(other, {}).setdefault(pair, (line, number))
            for (_, file), (length, foreign) in zip(files, counts):
                tokens[file] += length
                unknown[file] += foreign
                if not 0 < length <= self.limits.longest:
                    self.note_line(file, TOO_LONG if length else empty, number)
        shares = [(language, file, 100 * unknown[file] / max(1, tokens[file])) for language, file in files]
        self.splits[split] = SplitCounts(number, {language: share for language, _, share in shares})
        return [(language, file, share) for language, file, share in shares if share > self.limits.most_unknown]

    def note_overlaps(self, files: Mapping[str, str]) -> None:
        """Note the splits of which too much is in train, with the file to name for each."""
        for split, lines in self._repeated.items():
            counts = self.splits[split]
            counts.overlap = len(lines)
            if 100 * len(lines) > self.limits.most_overlap * counts.pairs:
                line, first = min(lines.values())
                problem = f"the pair is also in train, line {first}, so scores on {split} measure memorisation: "
                self.note(files[split], f"{problem}drop it in one", line, len(lines))


def side_by_side(name: str, texts: Iterable[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield what the texts have side by side, with None for each text that has already ended."""
    yield from progress_bar(zip_longest(*texts), desc=name, unit=" pairs", unit_scale=True, leave=False)


def is_train(split: str) -> bool:
    """Return whether a split is a part of the training set: `train`, `train1`, `train.en-de`."""
    return re.match(r"train\d*(\.|$)", split) is not None
