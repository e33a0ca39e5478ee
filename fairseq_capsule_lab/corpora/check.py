"""Check of a data folder before a training, with or without its text: one pass over its files, in constant memory."""

import re
from collections.abc import Collection, Iterator
from itertools import repeat
from pathlib import Path

from fairseq.data import Dictionary

from fairseq_capsule.data import binarised
from fairseq_capsule.data.binarised import BinarisedText, BrokenFile
from fairseq_capsule.data.dictionaries import read_dictionaries
from fairseq_capsule.errors import one_line
from fairseq_capsule_lab.corpora import check_binarised
from fairseq_capsule_lab.corpora.check_text import Fault, FolderCheck, Limits, TextFiles, dictionary_order, is_train
from fairseq_capsule_lab.corpora.parallel import progress_bar
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.stages import sha256

FINAL = ("bpe", "characters")  # folders of the text that is binarised
TEXTS = ("raw", "tokenised", "clean", *FINAL)
REMEDY = "name a folder that scripts/prepare-*.sh made"
MANIFEST = "manifest.tsv"
ROWS = {"command": 2, "setting": 3, "version": 3, "part": 3, "source": 3, "file": 3}  # minimum number of fields
AGAIN = f"delete {MANIFEST} and prepare again"


def folder_check(folder: Path, limits: Limits) -> FolderCheck:
    """Return the check of the text and the binarised data of a folder, or of its binarised data if it has no text.

    Raises:
        LabError: the folder was made neither by a script nor by fairseq-preprocess, or its preparation did not finish.
        UserError: a dictionary is broken.
    """
    if final_text(folder) or (folder / "settings").is_file():  # a prepared folder without its text is damaged
        return _PreparedFolder(folder, limits)
    return check_binarised.BinarisedFolder(folder / "bin" if (folder / "bin").is_dir() else folder, limits)


def final_text(folder: Path) -> str:
    """Return the name of the folder with the text that is binarised, or "" if there is none."""
    settings = folder / "settings"
    pieces = settings.is_file() and b"\nbpe sentencepiece" in settings.read_bytes()
    # With SentencePiece, long sentences are counted in pieces and removed after the text was split into pieces.
    stages = ("clean", *FINAL) if pieces else (*FINAL, "clean")
    return next((name for name in stages if (folder / name).is_dir()), "")


class _PreparedFolder(FolderCheck):
    """What a prepare script made: the text of all stages, dictionaries, binarised data, and a manifest of them."""

    def __init__(self, folder: Path, limits: Limits):
        super().__init__(folder, limits)
        self.final, self.bin = final_text(folder), folder / "bin"
        self.dictionaries = read_dictionaries(self.bin) if any(self.bin.glob("dict.*.txt")) else {}
        if len(self.dictionaries) != 2:
            raise LabError(f"{folder}: it has no bin with two dictionaries; {REMEDY}")
        if not self.final:
            raise LabError(f"{folder}: it has no folder bpe or characters; {REMEDY}")
        self.sides = list(self.dictionaries)
        self.stages = [stage for stage in TEXTS if (folder / stage).is_dir()]
        self.names = self._splits()
        self.notes += _warnings(folder)

    def _splits(self) -> list[str]:
        """Return the splits that any stage has, and the required ones. Train comes last."""
        patterns = [f"*.{language}" for language in self.dictionaries]
        texts = (file for stage in self.stages for pattern in patterns for file in (self.folder / stage).glob(pattern))
        names = {file.name.rpartition(".")[0] for file in texts}
        names.update(check_binarised.NEEDED, binarised.splits_of(self.bin))
        return sorted(names, key=lambda name: (is_train(name), name))

    def findings(self) -> Iterator[Fault]:
        named = set()
        for finding in self._of_contents():
            named.add(finding.file)
            yield finding
        yield from _manifest_findings(self.folder, self._listed_files(), named)

    def _listed_files(self) -> list[str]:
        """Return the existing files that a manifest must list."""
        names = [f"{stage}/{split}.{name}" for stage in self.stages for split in self.names for name in self.sides]
        patterns = ("bin/dict.*.txt", "bin/*.idx", "bin/*.bin", "dict*.txt", "codes*")
        others = (path for pattern in patterns for path in self.folder.glob(pattern) if path.suffix != ".log")
        return [*(name for name in names if (self.folder / name).is_file()), *map(self._name, others)]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _of_contents(self) -> Iterator[Fault]:
        for language, dictionary in self.dictionaries.items():
            yield from dictionary_order(f"bin/dict.{language}.txt", dictionary)
        for stage in self.stages:
            for split in self.names if stage != self.final else ():
                text = self._text(stage, split)
                for _ in text.read():
                    pass
                yield from text.findings()
        for split in self.names:
            yield from self._final_split(split)
        yield from self.overlaps({split: f"{self.final}/{split}.{self.sides[0]}" for split in self.names})

    def _text(self, stage: str, split: str) -> TextFiles:
        return TextFiles(self.folder, stage, split, self.sides, self.limits.longest)

    def _final_split(self, split: str) -> Iterator[Fault]:
        text = self._text(self.final, split)
        comparisons, broken = self._comparisons(split)
        known = [dictionary.indices.keys() for dictionary in self.dictionaries.values()]
        first_unknown: dict[int, tuple[int, str]] = {}  # by side
        for number, pair in text.read():
            self.see(split, number, pair)
            for side, line in enumerate(pair):
                tokens = line.split()  # splits at all Unicode spaces, as fairseq-preprocess does
                unknown = [token for token in tokens if token not in known[side]]
                text.count(side, number, len(tokens), len(unknown))
                if unknown:
                    first_unknown.setdefault(side, (number, unknown[0]))
                for comparison in comparisons[side]:
                    comparison.see(number, tokens)
        counts = self.splits[split] = text.counts(self.sides)
        yield from text.findings()
        for side, (language, share) in enumerate(counts.unknown.items()):
            if share > self.limits.most_unknown:
                first, token = first_unknown[side]
                problem = f"{token!r} is not in bin/dict.{language}.txt, like {share:.2f}% of the tokens: codes and "
                problem += "dictionary are of different runs; prepare it with --codes and --dict of the same run"
                yield Fault(text.files[side], first, problem)
        yield from broken
        for side, of_side in enumerate(comparisons if text.is_sound() else ()):
            for comparison in of_side:
                yield from self._difference(comparison, text, side)

    def _comparisons(self, split: str) -> tuple[list[list["_Comparison"]], list[Fault]]:
        """Return the comparisons of each language, and the problems that prevent a comparison."""
        comparisons: list[list[_Comparison]] = [[] for _ in self.sides]
        findings = []
        for side, (language, dictionary) in enumerate(self.dictionaries.items()):
            texts = binarised.binarised_texts(self.bin, split)
            indices = [path for path in texts if binarised.language_of(path) == language]
            if not indices:
                has_text = (self.folder / f"{self.final}/{split}.{language}").is_file()
                reason = f", but {self.final} has {split}" if has_text else ""
                problem = f"missing{reason}: delete bin and prepare again"
                findings.append(Fault(f"bin/{split}.*.{language}.idx", None, problem))
            for index in indices:
                try:
                    comparisons[side].append(_Comparison(index, dictionary))
                except BrokenFile as error:
                    findings.append(Fault(self._name(error.path), None, error.problem))
        return comparisons, findings

    def _difference(self, comparison: "_Comparison", text: TextFiles, side: int) -> Iterator[Fault]:
        again = "delete bin and prepare again"
        if comparison.sentences != text.pairs:
            problem = f"{comparison.sentences} sentences, but {self.final} has {text.pairs}: {again}"
            yield Fault(self._name(comparison.index), None, problem)
        elif comparison.first:
            dictionary = f"bin/dict.{self.sides[side]}.txt"
            problem = f"not the tokens of {text.files[side]} with {dictionary}: {again}"
            yield Fault(self._name(comparison.data), comparison.first, problem)


class _Comparison(BinarisedText):
    """Binarised text that is compared with the lines of its text, which are seen in order.

    `first` is the first line that has a missing or different sentence, or 0.
    """

    def __init__(self, index: Path, dictionary: Dictionary):
        super().__init__(index)
        self.require_known_tokens(len(dictionary))
        self.first, self._dictionary = 0, dictionary
        self._sentences = check_binarised.sentences_of(self)

    def see(self, number: int, words: list[str]) -> None:
        """Take the next line."""
        if self.first:
            return
        numbers, unknown, end = self._dictionary.indices, self._dictionary.unk(), self._dictionary.eos()
        if next(self._sentences, None) != [*map(numbers.get, words, repeat(unknown)), end]:
            self.first = number


def _warnings(folder: Path) -> list[str]:
    """Return the warnings of a preparation: training texts of which many pairs were left out."""
    path = folder / MANIFEST
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    parts = (line.split("\t") for line in lines if line.startswith("part\t"))
    return [one_line(part[3]) for part in parts if len(part) > 3]


def _manifest_findings(folder: Path, expected: Collection[str], known: Collection[str]) -> Iterator[Fault]:
    """Compare the SHA-256 of each file that the manifest lists. A folder that no script prepared needs none.

    Args:
        expected: files that the manifest must list.
        known: files that already have findings; their hashes are not checked.
    """
    path = folder / MANIFEST
    if not path.is_file():
        if (folder / "settings").is_file():
            yield Fault(MANIFEST, None, "missing, because the preparation did not finish: run the same command again")
        return
    lines = path.read_bytes().decode(errors="replace").split("\n")
    if lines.pop():
        yield Fault(MANIFEST, len(lines) + 1, f"cut short inside a line: {AGAIN}")
    listed: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if len(fields) < ROWS.get(fields[0], len(fields) + 1):
            yield Fault(MANIFEST, number, f"not a line of a manifest: {AGAIN}")
        elif fields[0] == "file":
            listed[fields[1]] = fields[2]
    unlisted = sorted(set(expected) - listed.keys())
    if unlisted:
        more = f" and {len(unlisted) - 1} more files" if len(unlisted) > 1 else ""
        problem = f"does not list {unlisted[0]}{more}, so it belongs to another folder or is cut short: {AGAIN}"
        yield Fault(MANIFEST, None, problem)
    unchecked = [file for file in listed if file not in known]
    for file in progress_bar(unchecked, desc=MANIFEST, unit=" files", leave=False):
        if not re.fullmatch(r"[^/]+(/[^/]+)*", file) or ".." in file.split("/") or not file.isprintable():
            yield Fault(MANIFEST, None, f"lists {file!r}, which is not a file of this folder: {AGAIN}")
        elif not (folder / file).is_file():
            problem = f"missing, but {MANIFEST} lists it: delete what was made from it and prepare again"
            yield Fault(file, None, problem)
        elif sha256(folder / file) != listed[file]:
            problem = f"not the file that {MANIFEST} lists (SHA-256): copy it again, or delete it, {MANIFEST} and what "
            yield Fault(file, None, problem + "was made from it and prepare again")
