"""Check of a data folder before a training, with or without its text. Only valid and test pairs stay in memory."""

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import permutations, repeat, zip_longest
from pathlib import Path

from fairseq.data.indexed_dataset import MMapIndexedDataset

from capsule_routing.errors import UserError
from capsule_routing.text.folders import language_pairs, settings_of
from capsule_routing.text.preparation import compose
from fairseq_capsule.data.binarised import CONTROL_SYMBOLS, IN_TEXT, REMEDY, BinarisedText, BrokenFile, indices
from fairseq_capsule.data.dictionaries import read_dictionaries
from fairseq_capsule_lab.corpora.parallel import progress_bar
from fairseq_capsule_lab.corpora.texts import LEAST_EQUAL
from fairseq_capsule_lab.manifests import MANIFEST, sha256

STAGES = ("raw", "tokenised", "clean", "bpe", "characters")
BROKEN = {
    "\0": "a NUL character",
    "\r": "a carriage return",
    "\ufffd": "not UTF-8, or a replacement character of a wrong conversion",
}
NO_END = "no line feed at its end: it may be cut short: copy it again, or prepare it again"
EMPTY = "empty: drop the line in every language"
TOO_LONG = "too long: drop the line in every language, or give the model more --max-source-positions"
OTHER_RUNS = "codes and dictionary are of different runs, or the training text is too small for this text"
NOT_COMPOSED = "most lines with such tokens have characters that are not composed (NFC): compose and prepare it again"
UNSEEN = "there is no text with the binarised data, so it was not compared with a text"


@dataclass
class Fault:
    """A problem in a file: the first of the lines with it, counted from 1, or None if it is not in a line."""

    file: str
    line: int | None
    problem: str  # what is wrong and what to do
    lines: int

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.problem}" + (f" (and {self.lines - 1} more lines)" if self.lines > 1 else "")


@dataclass
class Split:
    """The figures of a split."""

    pairs: int
    unknown: dict[str, float] = field(default_factory=dict)  # per cent of the tokens, by language
    overlap: int = 0  # pairs that are also in train


class Check:
    """The check of a folder. `run` reads its files and fills the attributes.

    Attributes:
        faults: what is wrong, by file and problem.
        splits: the figures of each split whose binarised files are sound.
        notes: one line for what could not be checked, and for each text of which much was left out.

    Raises:
        UserError: the folder has no dictionaries of two languages, or a broken one.
    """

    def __init__(self, folder: Path, longest: int, most_unknown: float, most_overlap: float):
        self.folder, self.bin = folder, folder / "bin" if (folder / "bin").is_dir() else folder
        self.longest = longest  # tokens in a sentence
        self.most_unknown = most_unknown  # per cent of the tokens of a text
        self.most_overlap = most_overlap  # per cent of a split's pairs that are also in train
        self.dictionaries = read_dictionaries(self.bin)
        languages = set[str]().union(*language_pairs(self.bin))
        if len(self.dictionaries) != 2 or not languages <= self.dictionaries.keys():
            raise UserError(f"{self.bin}: not the dictionaries of two languages; name the data of one language pair")
        self.settings = settings_of(folder)  # empty if no script prepared the folder
        self.stages = [stage for stage in STAGES if (folder / stage).is_dir()]
        # Pieces of SentencePiece are counted, and long sentences removed, after the text was split into pieces.
        is_late = self.settings.get("bpe", "").startswith("sentencepiece")
        finals = ("clean", "bpe") if is_late else ("bpe", "characters", "clean")
        self.final = next((stage for stage in finals if stage in self.stages), "")  # the text that is binarised
        self.faults: dict[tuple[str, str], Fault] = {}
        self.splits: dict[str, Split] = {}
        self.notes = [] if self.final else [UNSEEN]
        self._held_out: dict[str, dict[Hashable, list[int]]] = {}  # split → pair → its lines
        self._repeated: dict[str, list[int]] = {}  # split → its lines whose pairs are also in train

    def run(self) -> None:
        texts = [file for stage in self.stages for file in (self.folder / stage).iterdir()]
        names = {file.stem for file in texts if file.suffix[1:] in self.dictionaries}
        for pair in permutations(self.dictionaries):
            names.update(file.name.partition(".")[0] for file in self.bin.glob(f"*.{'-'.join(pair)}.*.idx"))
        if not names:
            raise UserError(f"{self.bin}: no text of its languages; name a folder that fairseq-preprocess made")
        for split in ("train", "valid"):
            if split not in names and self.settings:
                self._note(self.bin / split, "missing: prepare it again")
            elif split not in names:
                self.notes.append(f"there is no {split} set")
        for split in sorted(names, key=lambda name: (name.startswith("train"), name)):
            for stage in self.stages:
                self._check_text(stage, split)
            self._check_split(split)
        for split, lines in self._repeated.items():
            self.splits[split].overlap = len(lines)
            if 100 * len(lines) > self.most_overlap * self.splits[split].pairs:
                problem = f"the pair is also in train, so scores on {split} measure memorisation: drop it in one"
                for line in sorted(lines):
                    self._note(f"{self.final}/{split}".lstrip("/"), problem, line)
        self._check_manifest()

    def _note(self, file: str | Path, problem: str, line: int | None = None) -> None:
        """Note a problem of a file, or count a further line with it."""
        name = file if isinstance(file, str) else file.relative_to(self.folder).as_posix()
        self.faults.setdefault((name, problem), Fault(name, line, problem, 0)).lines += 1

    def _lines(self, file: str) -> Iterator[bytes]:
        if (self.folder / file).is_file():
            with open(self.folder / file, "rb") as text:
                yield from progress_bar(text, desc=file, unit=" lines", unit_scale=True, leave=False)

    def _check_text(self, stage: str, split: str) -> None:
        """Note broken lines of a split in the folder of a stage, and texts of different lengths."""
        lengths = {}
        for file in (f"{stage}/{split}.{language}" for language in self.dictionaries):
            number, line = 0, b"\n"
            for number, line in enumerate(self._lines(file), 1):
                text = line.decode(errors="replace")
                for character, problem in BROKEN.items():
                    if character in text:
                        self._note(file, f"{problem}: convert the file, or replace the character", number)
            if not line.endswith(b"\n"):
                self._note(file, NO_END, number)
            lengths[file] = number
        shorter, longer = sorted(lengths, key=lengths.__getitem__)
        if lengths[longer] > lengths[shorter]:
            problem = f"{lengths[longer]} lines, but {shorter} has {lengths[shorter] or 'none'}: prepare it again"
            self._note(longer, problem)

    def _check_split(self, split: str) -> None:
        """Check the binarised files of a split, compare them with the text, and find pairs that are also in train."""
        texts: dict[str, BinarisedText] = {}
        for language, index in indices(self.bin, split, *self.dictionaries).items():
            try:
                texts[language] = BinarisedText(index)
                texts[language].require_known_tokens(len(self.dictionaries[language]))
            except BrokenFile as error:
                self._note(error.path, error.problem)
                return
        if len(texts) < 2:
            self._note(self.bin / f"{split}.*.idx", f"missing in one language or both: {REMEDY}")
            return
        first, second = texts.values()
        if first.sentences != second.sentences or not first.sentences:
            problem = f"{first.sentences} sentences, and {second.index.name} has {second.sentences}"
            self._note(first.index, f"{problem}: {REMEDY}")
            return
        self.splits[split] = Split(first.sentences)
        sides = (self._sentences(split, language, text) for language, text in texts.items())
        source, target = self.dictionaries.values()
        comparable = bool(self.final) or source == target  # of numbers, only those of one dictionary
        equal = 0
        for number, pair in enumerate(zip_longest(*sides), 1):  # to the end of both sides
            equal += comparable and pair[0] == pair[1]
            if not split.startswith("train"):
                self._held_out.setdefault(split, {}).setdefault(pair, []).append(number)
                continue
            for other, lines in self._held_out.items():
                if pair in lines:
                    self._repeated.setdefault(other, []).extend(lines.pop(pair))
        if equal >= LEAST_EQUAL and 10 * equal > 9 * first.sentences:
            problem = f"source and target are equal in {equal} of {first.sentences} lines: binarise a text and its "
            self._note(self.bin / f"{split}.*.idx", f"{problem}translation")

    def _sentences(self, split: str, language: str, text: BinarisedText) -> Iterator[Hashable]:
        """Yield what identifies each sentence of a text, and note what is wrong with it."""
        dictionary = self.dictionaries[language]
        file = f"{self.final}/{split}.{language}" if self.final else text.index.relative_to(self.folder).as_posix()
        lines = self._lines(file) if self.final else repeat(None, text.sentences)
        tokens = unknown = first = lines_with = not_composed = 0
        dataset = MMapIndexedDataset(str(text.index.with_suffix("")))
        sentences = (dataset[number].tolist() for number in range(len(dataset)))
        for number, (sentence, line) in enumerate(zip_longest(sentences, lines), 1):
            of_line = (line or b"").decode(errors="replace").split()  # at all Unicode spaces, as fairseq does
            if self.final and sentence != [*map(dictionary.index, of_line), dictionary.eos()]:
                problem = f"not the tokens of {file} with dict.{language}.txt: delete bin and prepare again"
                self._note(text.data, problem, number)
            if sentence is None:
                continue
            words = sentence[:-1] if sentence[-1:] == [dictionary.eos()] else sentence
            if not 0 < len(words) <= self.longest:
                self._note(file, TOO_LONG if words else EMPTY, number)
            if min(words, default=dictionary.unk()) < len(CONTROL_SYMBOLS):
                self._note(file, f"contains {CONTROL_SYMBOLS[min(words)]}: {IN_TEXT}", number)
            if dictionary.unk() in words:
                first = first or number
                unknown += words.count(dictionary.unk())
                lines_with += 1
                joined = " ".join(of_line).replace("@@ ", "")
                not_composed += compose(joined) != joined
            tokens += len(words)
            yield line if self.final else tuple(words)
        share = 100 * unknown / max(1, tokens)
        self.splits[split].unknown[language] = share
        if share > self.most_unknown:
            problem = f"{share:.2f}% of the tokens are not in dict.{language}.txt"
            if 2 * not_composed > lines_with:
                self._note(file, f"{problem}: {NOT_COMPOSED}", first)
            elif self.settings and not split.startswith("train"):  # a script splits all texts by the same codes
                self.notes.append(f"{file}: {problem}: the training text is small; --merges may be fewer")
            else:
                self._note(file, f"{problem}: {OTHER_RUNS}; prepare it with --codes and --dict of the same run", first)

    def _check_manifest(self) -> None:
        """Compare the SHA-256 of each file that the manifest lists and that has no fault yet."""
        manifest = self.folder / MANIFEST
        if not manifest.is_file():
            if self.settings:
                self._note(MANIFEST, "missing, because the preparation did not finish: run the same command again")
            return
        try:
            facts = json.loads(manifest.read_text(encoding="utf-8"))
            warnings = [text["warning"] for text in facts["texts"] if "warning" in text]  # many pairs were left out
            hashes = {name: of_file["sha256"] for name, of_file in facts["files"].items()}
        except (AttributeError, LookupError, TypeError, ValueError):
            self._note(MANIFEST, "damaged: copy it again, or delete it and prepare again")
            return
        self.notes += warnings
        faulty = {file for file, _ in self.faults}
        for name, digest in hashes.items():
            file = self.folder / name
            if name not in faulty and not (file.is_file() and sha256(file) == digest):
                problem = f"missing, or not the file that {MANIFEST} lists (SHA-256): copy it again, or delete it, "
                self._note(name, f"{problem}{MANIFEST} and what was made from it and prepare again")
