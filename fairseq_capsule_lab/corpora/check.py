"""Check of a data folder before a training, with or without its text: one pass over its files, in constant memory."""

import re
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

from capsule_routing.errors import one_line
from fairseq_capsule.data import binarised
from fairseq_capsule.data.binarised import BinarisedText, BrokenFile
from fairseq_capsule.data.dictionaries import read_dictionaries
from fairseq_capsule_lab.corpora import check_binarised
from fairseq_capsule_lab.corpora.check_folder import (
    EMPTY,
    TOO_LONG,
    Counted,
    FolderCheck,
    Limits,
    is_train,
    side_by_side,
)
from fairseq_capsule_lab.corpora.parallel import progress_bar
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.stages import sha256

FINAL = ("bpe", "characters")  # folders of the text that is binarised
TEXTS = ("raw", "tokenised", "clean", *FINAL)
REMEDY = "name a folder that scripts/prepare-*.sh made"
MANIFEST = "manifest.tsv"
FIELDS = {"command": 1, "setting": 2, "version": 2, "part": 2, "source": 2, "file": 2}  # of each kind of line, at least
AGAIN = f"delete {MANIFEST} and prepare again"
BINARISE = "delete bin and prepare again"
LONGEST_LINE = 1 << 24  # in bytes; a longer line is read in parts, and is not text
NO_END = "no line feed at its end: it may be cut short: copy it again, or prepare it again"
NOT_UTF8 = "not UTF-8: convert the file"
WRONG_CHARACTERS = {
    "\0": "a NUL character: drop the line in every language",
    "\r": "a stray carriage return: replace it by a space",
    "\ufffd": "a replacement character: it comes from a wrong conversion: convert again, or drop the line in every "
    "language",
}


def check_data(folder: Path, limits: Limits) -> FolderCheck:
    """Check the text and the binarised data of a folder, or its binarised data if it has no text.

    Raises:
        LabError: the folder was made neither by a script nor by fairseq-preprocess, or its preparation did not finish.
        UserError: a dictionary is broken.
    """
    check: FolderCheck
    if final_text(folder) or (folder / "settings").is_file():  # a prepared folder without its text is damaged
        check = _PreparedFolder(folder, limits)
    else:
        check = check_binarised.BinarisedFolder(folder / "bin" if (folder / "bin").is_dir() else folder, limits)
    check.run()
    return check


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
        self.final = final_text(folder)
        self.bin = folder / "bin"
        self.dictionaries = read_dictionaries(self.bin) if any(self.bin.glob("dict.*.txt")) else {}
        if len(self.dictionaries) != 2:
            raise LabError(f"{folder}: it has no bin with two dictionaries; {REMEDY}")
        if not self.final:
            raise LabError(f"{folder}: it has no folder bpe or characters; {REMEDY}")
        self.stages = [stage for stage in TEXTS if (folder / stage).is_dir()]
        # The splits that any stage has, and the required ones. Train comes last.
        patterns = [f"{stage}/*.{language}" for stage in self.stages for language in self.dictionaries]
        texts = [file for pattern in patterns for file in folder.glob(pattern)]
        names = {*(file.stem for file in texts), *check_binarised.NEEDED, *binarised.splits_of(self.bin)}
        self.names = sorted(names, key=lambda name: (is_train(name), name))
        # The existing files that a manifest must list.
        patterns = ["bin/dict.*.txt", "bin/*.idx", "bin/*.bin", "dict*.txt", "codes*"]
        others = (path for pattern in patterns for path in folder.glob(pattern) if path.suffix != ".log")
        self.listed = {self._name(path) for path in (*texts, *others) if path.is_file()}

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def run(self) -> None:
        for language, dictionary in self.dictionaries.items():
            self.note_order(f"bin/dict.{language}.txt", dictionary)
        for stage in self.stages:
            for split in self.names if stage != self.final else ():
                for _ in self._pairs(stage, split):
                    pass
        for split in self.names:
            self._check_final(split)
        self.note_overlaps({split: f"{self.final}/{split}.{next(iter(self.dictionaries))}" for split in self.names})
        self._check_manifest()

    def _pairs(self, stage: str, split: str) -> Iterator[tuple[str, ...]]:
        """Yield the pairs of a split in the folder of a stage, and note what is wrong with its texts."""
        files = [f"{stage}/{split}.{language}" for language in self.dictionaries]
        missing = [file for file in files if not (self.folder / file).is_file()]
        other = "other stages may have it" if missing == files else "but the other language is there"
        for file in missing:
            self.note(file, f"missing, {other}: prepare it again")
        lines = [0] * len(files)
        for pair in side_by_side(f"{stage}/{split}", (_lines(self.folder / file) for file in files if not missing)):
            lines = [count + (line is not None) for count, line in zip(lines, pair)]
            if None in pair:
                continue
            for file, line in zip(files, pair):
                for problem in _wrong_bytes(line):
                    self.note_line(file, problem, lines[0])  # all have as many lines so far
            yield tuple(line.removesuffix(b"\n").decode(errors="replace") for line in pair)
        most = max(lines)
        least = min(lines)
        if most > least:
            problem = f"no such line in {files[lines.index(least)]}: {most} and {least} lines are not parallel; "
            self.note(files[lines.index(most)], f"{problem}prepare it again", least + 1)
        elif not missing and not most:
            self.note(files[0], "no lines: prepare it again")

    def _check_final(self, split: str) -> None:
        """Check the text of a split that is binarised, and compare it with the binarised files."""
        files = {language: f"{self.final}/{split}.{language}" for language in self.dictionaries}
        texts = [(language, text, check_binarised.sentences_of(text)) for language, text in self._binarised(split)]
        different: dict[Path, int] = {}  # the first line that has a missing or another sentence
        unknown: dict[str, tuple[int, str]] = {}  # the first unknown token of each language, and its line

        def counts() -> Iterator[Counted]:
            for number, pair in enumerate(self._pairs(self.final, split), start=1):
                numbers_of_tokens = []
                for (language, dictionary), line in zip(self.dictionaries.items(), pair):
                    tokens = line.split()  # splits at all Unicode spaces, as fairseq-preprocess does
                    foreign = [token for token in tokens if token not in dictionary.indices]
                    if foreign:
                        unknown.setdefault(language, (number, foreign[0]))
                    numbers_of_tokens.append((len(tokens), len(foreign)))
                    numbers = [*map(dictionary.indices.get, tokens, repeat(dictionary.unk())), dictionary.eos()]
                    for own, text, sentences in texts:
                        if own == language and text.data not in different and next(sentences, None) != numbers:
                            different[text.data] = number
                yield pair, numbers_of_tokens

        shares = self.count(split, list(files.items()), counts())
        problems = {fault.problem for fault in self.faults if fault.file in files.values()}
        is_sound = problems <= {EMPTY, TOO_LONG, NO_END}
        for language, file, share in shares:
            line, token = unknown[language]
            problem = f"{token!r} is not in bin/dict.{language}.txt, like {share:.2f}% of the tokens"
            remedy = "codes and dictionary are of different runs; prepare it with --codes and --dict of the same run"
            self.note(file, f"{problem}: {remedy}", line)
        pairs = self.splits[split].pairs
        for language, text, _ in texts if is_sound else ():
            if text.sentences != pairs:
                problem = f"{text.sentences} sentences, but {self.final} has {pairs}: {BINARISE}"
                self.note(self._name(text.index), problem)
            elif text.data in different:
                problem = f"not the tokens of {files[language]} with bin/dict.{language}.txt: {BINARISE}"
                self.note(self._name(text.data), problem, different[text.data])

    def _binarised(self, split: str) -> Iterator[tuple[str, BinarisedText]]:
        """Yield the languages and binarised texts of a split, and note what is missing or broken."""
        indices = binarised.binarised_texts(self.bin, split)
        for language, dictionary in self.dictionaries.items():
            own = [index for index in indices if binarised.language_of(index) == language]
            if not own:
                has_text = (self.folder / f"{self.final}/{split}.{language}").is_file()
                reason = f", but {self.final} has {split}" if has_text else ""
                self.note(f"bin/{split}.*.{language}.idx", f"missing{reason}: {BINARISE}")
            for index in own:
                try:
                    text = BinarisedText(index)
                    text.require_known_tokens(len(dictionary))
                    yield language, text
                except BrokenFile as error:
                    self.note(self._name(error.path), error.problem)

    def _check_manifest(self) -> None:
        """Compare the SHA-256 of each file that the manifest lists and that has no fault yet."""
        path = self.folder / MANIFEST
        faulty = {fault.file for fault in self.faults}
        if not path.is_file():
            if (self.folder / "settings").is_file():  # a folder that no script prepared needs none
                problem = "missing, because the preparation did not finish: run the same command again"
                self.note(MANIFEST, problem)
            return
        lines = path.read_bytes().decode(errors="replace").split("\n")
        if lines.pop():
            self.note(MANIFEST, f"cut short inside a line: {AGAIN}", len(lines) + 1)
        listed: dict[str, str] = {}
        for number, line in enumerate(lines, start=1):
            kind, *fields = line.split("\t")
            if len(fields) < FIELDS.get(kind, len(fields) + 1):
                self.note(MANIFEST, f"not a line of a manifest: {AGAIN}", number)
            elif kind == "file":
                listed[fields[0]] = fields[1]
            elif kind == "part" and len(fields) > 2:
                self.notes.append(one_line(fields[2]))  # a warning: many pairs were left out
        unlisted = sorted(self.listed - listed.keys())
        if unlisted:
            more = f" and {len(unlisted) - 1} more files" if len(unlisted) > 1 else ""
            problem = f"does not list {unlisted[0]}{more}, so it belongs to another folder or is cut short: {AGAIN}"
            self.note(MANIFEST, problem)
        for file in progress_bar(sorted(listed.keys() - faulty), desc=MANIFEST, unit=" files", leave=False):
            if not re.fullmatch(r"[^/]+(/[^/]+)*", file) or ".." in file.split("/") or not file.isprintable():
                self.note(MANIFEST, f"lists {file!r}, which is not a file of this folder: {AGAIN}")
            elif not (self.folder / file).is_file():
                problem = f"missing, but {MANIFEST} lists it: delete what was made from it and prepare again"
                self.note(file, problem)
            elif sha256(self.folder / file) != listed[file]:
                problem = f"not the file that {MANIFEST} lists (SHA-256): copy it again, or delete it, {MANIFEST} and "
                self.note(file, f"{problem}what was made from it and prepare again")


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
