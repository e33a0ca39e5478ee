"""What is wrong with a prepared data folder before a model trains on it: one pass over its texts, in flat memory."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from fairseq.data import Dictionary, data_utils
from tqdm import tqdm

from fairseq_capsule.errors import UserError

Pair = Tuple[bytes, ...]  # a line of each language

FINAL = ("bpe", "characters")  # the folders of the text that is binarised
TEXTS = ("raw", "tokenised", "clean", *FINAL)
MENDS = {
    "not UTF-8": "convert the file",
    "a NUL character": "drop the line in every language",
    "a stray carriage return": "replace it by a space",
    "a replacement character": "a wrong conversion left it: convert again, or drop the line in every language",
    "empty": "drop the line in every language",
    "too long": "drop the line in every language, or give the model more --max-source-positions",
}


@dataclass(frozen=True)
class Limits:
    """Tokens of a sentence; per cent of a text's tokens that are unknown, and of a split's pairs that are in train."""

    longest: int = 1024
    most_unknown: float = 5.0
    most_overlap: float = 1.0


@dataclass(frozen=True)
class Finding:
    """`line` is the first with the problem, from 1, None where it is not one of a line; `lines`: how many have it."""

    file: str
    line: Optional[int]
    problem: str
    lines: int = 1

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.problem}" + (f" (and {self.lines - 1} more lines)" if self.lines > 1 else "")


@dataclass(frozen=True)
class Split:
    """`unknown` is the per cent of each language's tokens; `overlap` the number of pairs that are in train, too."""

    pairs: int
    unknown: Dict[str, float]
    overlap: int = 0


class FolderCheck:
    """The checks of one folder; `splits` has the figures of each split when `findings` has been read to its end."""

    def __init__(self, folder: Path, limits: Limits):
        """
        Raises:
            UserError: no folder that a prepare script finished.
        """
        self.folder, self.limits = folder, limits
        self.splits: Dict[str, Split] = {}
        self.final = next((name for name in FINAL if (folder / name).is_dir()), None)
        self.languages, self.dictionaries = _dictionaries(folder)
        if not self.final:
            raise UserError(f"{folder}: no folder bpe or characters in it; name one that scripts/prepare-*.sh made")

    def findings(self) -> Iterator[Finding]:
        for stage in TEXTS:
            if stage != self.final and (self.folder / stage).is_dir():
                for split in self._splits(stage):
                    yield from self._text(stage, split)
        yield from self._final_text()

    def _splits(self, stage: str) -> List[str]:
        """Every split of which a file is there in either language; train comes last."""
        names = {
            file.name.rpartition(".")[0] for lang in self.languages for file in (self.folder / stage).glob(f"*.{lang}")
        }
        return sorted(names, key=lambda name: (name == "train", name))

    def _text(self, stage: str, split: str) -> Iterator[Finding]:
        pairs = _Pairs(self.folder, stage, split, self.languages)
        for _ in pairs:
            pass
        yield from pairs.findings()

    def _final_text(self) -> Iterator[Finding]:
        assert self.final
        overlap = _Overlap()
        for split in self._splits(self.final):
            pairs = _Pairs(self.folder, self.final, split, self.languages)
            unknown = [_Unknown(dictionary) for dictionary in self.dictionaries]
            for number, pair in pairs:
                overlap.see(split, number, pair)
                for side, line in enumerate(pair):
                    tokens = line.split()
                    if not tokens:
                        pairs.note(side, number, "empty")
                    elif len(tokens) > self.limits.longest:
                        pairs.note(side, number, "too long")
                    unknown[side].count(number, tokens)
            shares = dict(zip(self.languages, (counted.share() for counted in unknown)))
            self.splits[split] = Split(pairs.number, shares)
            yield from pairs.findings()
            yield from self._unknown(split, unknown)
            yield from self._binarised(split, pairs.number)
        for split, lines in overlap.lines.items():
            self.splits[split] = replace(self.splits[split], overlap=len(lines))
            yield from self._overlap(split, lines)

    def _unknown(self, split: str, unknown: List["_Unknown"]) -> Iterator[Finding]:
        for language, counted in zip(self.languages, unknown):
            if counted.share() > self.limits.most_unknown:
                yield Finding(
                    f"{self.final}/{split}.{language}",
                    counted.line,
                    f"{counted.token!r} is not in bin/dict.{language}.txt, like {counted.share():.2f}% of the tokens: "
                    "codes and dictionary are not of one run; prepare it with --codes and --dict of the same",
                )

    def _binarised(self, split: str, pairs: int) -> Iterator[Finding]:
        for language, dictionary in zip(self.languages, self.dictionaries):
            found = list((self.folder / "bin").glob(f"{split}.*-*.{language}.idx"))
            if not found:
                yield Finding(
                    f"bin/{split}.*.{language}.idx",
                    None,
                    f"missing, {self.final} has {split}: delete bin, prepare again",
                )
                continue
            sentences = len(data_utils.load_indexed_dataset(str(found[0].with_suffix("")), dictionary))
            if sentences != pairs:
                yield Finding(
                    f"bin/{found[0].name}",
                    None,
                    f"{sentences} sentences, {self.final} has {pairs}: delete bin, prepare again",
                )

    def _overlap(self, split: str, lines: Dict[Pair, Tuple[int, int]]) -> Iterator[Finding]:
        if 100 * len(lines) > self.limits.most_overlap * self.splits[split].pairs:
            line, there = min(lines.values())
            yield Finding(
                f"{self.final}/{split}.{self.languages[0]}",
                line,
                f"the pair is also in train, line {there}: scores of {split} would be of what was learnt by heart",
                len(lines),
            )


class _Pairs:
    """Iterates over (number, lines) of a split, a line of each language, and notes what is wrong with them."""

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
                for problem in _wrong_encoding(line):
                    self.note(side, self.number, problem)
            yield self.number, pair

    def findings(self) -> Iterator[Finding]:
        for file in self._missing:
            yield Finding(file, None, "missing, the other language is there: prepare it again")
        for (side, problem), line in self._first.items():
            yield Finding(self._files[side], line, f"{problem}: {MENDS[problem]}", self._lines[side, problem])
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


class _Overlap:
    """Finds the pairs of other splits that are in train, too; `lines`: split → pair → its first lines in both."""

    def __init__(self) -> None:
        self._held_out: Dict[Pair, Dict[str, int]] = {}  # pair → split → its first line
        self.lines: Dict[str, Dict[Pair, Tuple[int, int]]] = {}

    def see(self, split: str, number: int, pair: Pair) -> None:
        """The pairs of train come last."""
        if split != "train":
            self._held_out.setdefault(pair, {}).setdefault(split, number)
            return
        for other, line in self._held_out.get(pair, {}).items():
            self.lines.setdefault(other, {}).setdefault(pair, (line, number))


class _Unknown:
    """Counts the tokens of a text that a dictionary does not know, and keeps the first."""

    def __init__(self, dictionary: Dictionary):
        self._known = {symbol.encode() for symbol in dictionary.symbols}
        self._tokens = self._unknown = 0
        self.line: Optional[int] = None
        self.token = ""

    def count(self, number: int, tokens: List[bytes]) -> None:
        self._tokens += len(tokens)
        if self._known.issuperset(tokens):
            return
        unknown = [token for token in tokens if token not in self._known]
        self._unknown += len(unknown)
        if self.line is None:
            self.line, self.token = number, unknown[0].decode(errors="replace")

    def share(self) -> float:
        return 100 * self._unknown / max(1, self._tokens)


def _dictionaries(folder: Path) -> Tuple[List[str], List[Dictionary]]:
    files = sorted((folder / "bin").glob("dict.*.txt"))
    if len(files) != 2:
        raise UserError(f"{folder}: no bin with two dictionaries in it; name a folder that scripts/prepare-*.sh made")
    return [file.name.split(".")[1] for file in files], [Dictionary.load(str(file)) for file in files]


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as text:
        for line in text:
            yield line.removesuffix(b"\n")


def _wrong_encoding(line: bytes) -> Iterator[str]:
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
