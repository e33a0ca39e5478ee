"""Checks of parallel texts, read side by side in one pass: wrong lines, unknown tokens and repeated pairs."""

from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Dict, Hashable, Iterator, List, Optional, Tuple

from fairseq.data import Dictionary
from tqdm import tqdm

from fairseq_capsule_lab.corpora.findings import Finding

Pair = Tuple[str, ...]  # one line for each language
Content = Tuple[Hashable, ...]  # a pair, or the tokens of a pair as bytes

LONGEST_LINE = 1 << 24  # in bytes; a longer line is read in parts, and is not text
REMEDIES = {
    "not UTF-8": "convert the file",
    "a NUL character": "drop the line in every language",
    "a stray carriage return": "replace it by a space",
    "a replacement character": "it comes from a wrong conversion: convert again, or drop the line in every language",
    "no line feed at its end": "it may be cut short: copy it again, or prepare it again",
    "empty": "drop the line in every language",
    "too long": "drop the line in every language, or give the model more --max-source-positions",
}


class Pairs:
    """Iterate over (number, lines) of a split, with one line for each language, and record problems."""

    def __init__(self, folder: Path, stage: str, split: str, languages: List[str]):
        self.number = 0
        self._files = [f"{stage}/{split}.{language}" for language in languages]
        self._folder, self._counts = folder, [0] * len(languages)
        self._first: Dict[Tuple[int, str], int] = {}  # (side, problem) → line
        self._lines: Counter = Counter()
        self._missing = [file for file in self._files if not (folder / file).is_file()]

    def note(self, side: int, number: int, problem: str) -> None:
        self._first.setdefault((side, problem), number)
        self._lines[side, problem] += 1

    def __iter__(self) -> Iterator[Tuple[int, Pair]]:
        if self._missing:
            return
        name = self._files[0].rpartition(".")[0]
        texts = [_lines(self._folder / file) for file in self._files]
        for pair in tqdm(
            zip_longest(*texts), desc=name, unit=" pairs", unit_scale=True, delay=2, disable=None, leave=False
        ):
            self._counts = [count + (line is not None) for count, line in zip(self._counts, pair)]
            if None in pair:
                continue
            self.number += 1
            for side, line in enumerate(pair):
                for problem in _wrong_bytes(line):
                    self.note(side, self.number, problem)
            yield self.number, tuple(line.removesuffix(b"\n").decode(errors="replace") for line in pair)

    def sound(self) -> bool:
        """Return whether the texts are parallel and have no wrong characters."""
        wrong = {problem for _, problem in self._first} - {"empty", "too long", "no line feed at its end"}
        return bool(self.number) and len(set(self._counts)) == 1 and not wrong

    def findings(self) -> Iterator[Finding]:
        other = (
            "but the other language is there" if len(self._missing) < len(self._files) else "other stages may have it"
        )
        for file in self._missing:
            yield Finding(file, None, f"missing, {other}: prepare it again")
        for (side, problem), line in self._first.items():
            yield Finding(self._files[side], line, f"{problem}: {REMEDIES[problem]}", self._lines[side, problem])
        if len(set(self._counts)) > 1:
            longer = self._counts.index(max(self._counts))
            shorter = self._counts.index(min(self._counts))
            yield Finding(
                self._files[longer],
                self._counts[shorter] + 1,
                f"no such line in {self._files[shorter]}: {self._counts[longer]} and {self._counts[shorter]} lines are "
                "not parallel; prepare it again",
            )
        elif not self._missing and not self.number:
            yield Finding(self._files[0], None, "no lines: prepare it again")


class Overlap:
    """Find the pairs of other splits that are also in train.

    Attributes:
        lines: split → pair → its first line in the split and in train.
    """

    def __init__(self) -> None:
        self._held_out: Dict[Content, Dict[str, int]] = {}  # pair → split → its first line
        self.lines: Dict[str, Dict[Content, Tuple[int, int]]] = {}

    def see(self, split: str, number: int, pair: Content) -> None:
        """Take a pair. The pairs of train must come last."""
        if split != "train":
            self._held_out.setdefault(pair, {}).setdefault(split, number)
            return
        for other, line in self._held_out.get(pair, {}).items():
            self.lines.setdefault(other, {}).setdefault(pair, (line, number))


class Unknown:
    """Count the tokens of a text that are not in a dictionary, and store the first one and its line."""

    def __init__(self, dictionary: Dictionary):
        self._known = dictionary.indices.keys()
        self._tokens = self._unknown = 0
        self.line: Optional[int] = None
        self.token = ""

    def count(self, number: int, tokens: List[str]) -> None:
        self._tokens += len(tokens)
        unknown = [token for token in tokens if token not in self._known]
        self._unknown += len(unknown)
        if unknown and self.line is None:
            self.line, self.token = number, unknown[0]

    def share(self) -> float:
        return 100 * self._unknown / max(1, self._tokens)


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as text:
        while line := text.readline(LONGEST_LINE):
            yield line


def _wrong_bytes(line: bytes) -> Iterator[str]:
    if not line.endswith(b"\n"):
        yield "no line feed at its end"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        yield "not UTF-8"
        return
    if "\0" in text:
        yield "a NUL character"
    if "\r" in text:
        yield "a stray carriage return"
    if "\ufffd" in text:
        yield "a replacement character"
