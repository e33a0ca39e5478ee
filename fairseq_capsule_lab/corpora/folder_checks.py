"""Check of a prepared data folder before a training: one pass over its files, in constant memory."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from fairseq.data import Dictionary

from fairseq_capsule.data.binarised import BinarisedText, BrokenFile, binarised_texts, language_of, splits_of
from fairseq_capsule.data.dictionaries import read_dictionaries
from fairseq_capsule_lab.corpora.binarised_checks import Comparison
from fairseq_capsule_lab.corpora.findings import Finding
from fairseq_capsule_lab.corpora.manifests import manifest_findings, warnings
from fairseq_capsule_lab.corpora.text_checks import Content, Overlap, Pairs, Unknown
from fairseq_capsule_lab.errors import LabError

FINAL = ("bpe", "characters")  # folders of the text that is binarised
TEXTS = ("raw", "tokenised", "clean", *FINAL)
NEEDED = ("train", "valid")  # fairseq-train does not start without these splits


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
class Split:
    """The figures of a split.

    Attributes:
        pairs: the number of pairs.
        unknown: the share of unknown tokens in per cent, by language.
        overlap: the number of pairs that are also in train.
    """

    pairs: int
    unknown: Dict[str, float]
    overlap: int = 0


@dataclass(frozen=True)
class Checked:
    """The result of the check of a folder.

    Attributes:
        findings: the problems.
        splits: the figures of each split.
        notes: one line for each thing that could not be checked, and for each text of which much was left out.
    """

    findings: List[Finding]
    splits: Dict[str, Split]
    notes: Tuple[str, ...] = ()


def check_folder(folder: Path, limits: Limits) -> Checked:
    """Check a prepared folder.

    Raises:
        LabError: the folder was not prepared by a script, or its preparation did not finish.
    """
    check = _FolderCheck(folder, limits)
    return Checked(list(check.findings()), check.splits, warnings(folder))


class _FolderCheck:
    """The checks of one folder. `findings` fills `splits` while it reads the files."""

    def __init__(self, folder: Path, limits: Limits):
        self.folder, self.limits = folder, limits
        self.splits: Dict[str, Split] = {}
        self.final = final_text(folder)
        self.dictionaries = _dictionaries(folder)
        self.languages = list(self.dictionaries)
        if not self.final:
            raise LabError(
                f"{folder}: it has no folder bpe or characters; name a folder that scripts/prepare-*.sh made"
            )

    def findings(self) -> Iterator[Finding]:
        found: List[Finding] = []
        for finding in self._of_contents():
            found.append(finding)
            yield finding
        named = {finding.file for finding in found}
        yield from manifest_findings(self.folder, self._listed_files(), named)

    def _of_contents(self) -> Iterator[Finding]:
        for language, dictionary in self.dictionaries.items():
            yield from dictionary_order(f"bin/dict.{language}.txt", dictionary)
        for stage in TEXTS:
            if stage != self.final and (self.folder / stage).is_dir():
                for split in self._splits():
                    yield from self._text(stage, split)
        yield from self._final_text()

    def _splits(self) -> List[str]:
        """Return the splits that any stage has, and the required ones. Train comes last."""
        texts = (file for stage in TEXTS for lang in self.languages for file in (self.folder / stage).glob(f"*.{lang}"))
        names = {*NEEDED, *(file.name.rpartition(".")[0] for file in texts), *splits_of(self.folder / "bin")}
        return sorted(names, key=lambda name: (name == "train", name))

    def _listed_files(self) -> List[str]:
        """Return the existing files that a manifest must list."""
        stages = [stage for stage in TEXTS if (self.folder / stage).is_dir()]
        texts = [f"{stage}/{split}.{lang}" for stage in stages for split in self._splits() for lang in self.languages]
        patterns = ("bin/dict.*.txt", "bin/*.idx", "bin/*.bin", "dict*.txt", "codes*")
        others = [path for pattern in patterns for path in self.folder.glob(pattern) if path.suffix != ".log"]
        return [*filter(lambda file: (self.folder / file).is_file(), texts), *map(self._name, others)]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _text(self, stage: str, split: str) -> Iterator[Finding]:
        pairs = Pairs(self.folder, stage, split, self.languages)
        for _ in pairs:
            pass
        yield from pairs.findings()

    def _final_text(self) -> Iterator[Finding]:
        assert self.final
        overlap = Overlap()
        for split in self._splits():
            pairs = Pairs(self.folder, self.final, split, self.languages)
            unknown = [Unknown(dictionary) for dictionary in self.dictionaries.values()]
            binarised, broken = self._binarised(split)
            for number, pair in pairs:
                overlap.see(split, number, pair)
                for side, line in enumerate(pair):
                    tokens = line.split()  # splits at all Unicode spaces, as fairseq-preprocess does
                    if not tokens:
                        pairs.note(side, number, "empty")
                    elif len(tokens) > self.limits.longest:
                        pairs.note(side, number, "too long")
                    unknown[side].count(number, tokens)
                    for comparison in binarised[side]:
                        comparison.see(tokens)
            shares = dict(zip(self.languages, (counted.share() for counted in unknown)))
            self.splits[split] = Split(pairs.number, shares)
            yield from pairs.findings()
            yield from self._unknown(split, unknown)
            yield from broken
            if pairs.sound():
                yield from self._compared(split, pairs.number, binarised)
        for split, lines in overlap.lines.items():
            self.splits[split] = replace(self.splits[split], overlap=len(lines))
            yield from self._overlap(split, lines)

    def _unknown(self, split: str, unknown: List[Unknown]) -> Iterator[Finding]:
        for language, counted in zip(self.languages, unknown):
            if counted.share() > self.limits.most_unknown:
                yield Finding(
                    f"{self.final}/{split}.{language}",
                    counted.line,
                    f"{counted.token!r} is not in bin/dict.{language}.txt, like {counted.share():.2f}% of the tokens: "
                    "codes and dictionary are of different runs; prepare it with --codes and --dict of the same run",
                )

    def _binarised(self, split: str) -> Tuple[List[List[Comparison]], List[Finding]]:
        """Return the comparisons for each language's text, and the problems that prevent a comparison."""
        comparisons: List[List[Comparison]] = []
        findings: List[Finding] = []
        for language, dictionary in self.dictionaries.items():
            indices = [path for path in binarised_texts(self.folder / "bin", split) if language_of(path) == language]
            if not indices:
                place = f"bin/{split}.*.{language}.idx"
                there = (self.folder / f"{self.final}/{split}.{language}").is_file()
                reason = f", but {self.final} has {split}" if there else ""
                findings.append(Finding(place, None, f"missing{reason}: delete bin and prepare again"))
            comparisons.append([])
            for index in indices:
                try:
                    text = BinarisedText(index)
                    text.require_known_tokens(len(dictionary))
                    comparisons[-1].append(Comparison(text, dictionary))
                except BrokenFile as error:
                    findings.append(Finding(self._name(error.path), None, error.problem))
        return comparisons, findings

    def _compared(self, split: str, pairs: int, binarised: List[List[Comparison]]) -> Iterator[Finding]:
        for comparison in (each for of_language in binarised for each in of_language):
            text, line = comparison.binarised, comparison.finish()
            if text.sentences != pairs:
                problem = f"{text.sentences} sentences, but {self.final} has {pairs}: delete bin and prepare again"
                yield Finding(self._name(text.index), None, problem)
            elif line:
                language = language_of(text.index)
                problem = f"not the tokens of {self.final}/{split}.{language} with bin/dict.{language}.txt"
                yield Finding(self._name(text.data), line, f"{problem}: delete bin and prepare again")

    def _overlap(self, split: str, lines: Dict[Content, Tuple[int, int]]) -> Iterator[Finding]:
        if 100 * len(lines) > self.limits.most_overlap * self.splits[split].pairs:
            line, there = min(lines.values())
            yield Finding(
                f"{self.final}/{split}.{self.languages[0]}",
                line,
                f"the pair is also in train, line {there}, so scores on {split} measure memorisation: drop it in one",
                len(lines),
            )


def _dictionaries(folder: Path) -> Dict[str, Dictionary]:
    found = read_dictionaries(folder / "bin") if any((folder / "bin").glob("dict.*.txt")) else {}
    if len(found) != 2:
        raise LabError(f"{folder}: it has no bin with two dictionaries; name a folder that scripts/prepare-*.sh made")
    return found


def final_text(folder: Path) -> Optional[str]:
    """Return the name of the folder with the text that is binarised, or None if there is none."""
    settings = folder / "settings"
    pieces = settings.is_file() and b"\nbpe sentencepiece" in settings.read_bytes()
    # With SentencePiece, long sentences are counted in pieces and removed after the text was split into pieces.
    stages = ("clean", *FINAL) if pieces else (*FINAL, "clean")
    return next((name for name in stages if (folder / name).is_dir()), None)


def dictionary_order(file: str, dictionary: Dictionary) -> Iterator[Finding]:
    """Check that the counts of a dictionary do not increase from line to line."""
    counts = dictionary.count[dictionary.nspecial :]
    rises = [line for line, (count, after) in enumerate(zip(counts, counts[1:]), start=2) if after > count]
    if rises:
        problem = (
            "a larger count than the line before, but fairseq-preprocess sorts by count: copy the dictionary again"
        )
        yield Finding(file, rises[0], problem, len(rises))
