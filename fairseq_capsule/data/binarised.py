"""Checks of the files of fairseq-preprocess, `.idx` (lengths of sentences) and `.bin` (tokens).

fairseq reads a `.bin` file that was cut short, or an index of another one, without an error.
"""

import struct
from pathlib import Path
from typing import Dict

import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset

from capsule_routing.errors import UserError

MAGIC, OLD_MAGIC = b"MMIDIDX\x00\x00", b"TNTIDX\x00\x00"  # the first bytes of an index, and of fairseq's older one
HEADER_SIZE = struct.calcsize("<9sQBQ")  # magic bytes, version, type of a token, number of sentences
PIECE = 1 << 18  # tokens read at a time
SENTENCES = 1 << 12  # sentences read at a time
CONTROL_SYMBOLS = ("<s>", "<pad>", "</s>")  # by their numbers in every dictionary of fairseq
IN_TEXT = "fairseq's control symbols may not be words; replace them in the text, and binarise it again"
REMEDY = "binarise the text again"
NO_START = f"a sentence does not start where the previous one ends: {REMEDY}"
NO_INDEX = f"not a whole index of fairseq-preprocess (--dataset-impl mmap): {REMEDY}"


class BrokenFile(UserError):
    """A file with wrong content: its path, and the problem, which also states what to do."""

    def __init__(self, path: Path, problem: str):
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class BinarisedText:
    """One language of a split: its files `index` and `data`, the `sizes` of its sentences, and the number of `tokens`.

    The end-of-sentence tokens count too.
    """

    def __init__(self, index: Path, check_offsets: bool = True):
        """Check that the files are complete and belong together; otherwise raise a BrokenFile."""
        self.index, self.data = index, index.with_suffix(".bin")
        for path in (self.index, self.data):
            if not path.is_file():
                raise BrokenFile(path, f"missing: {REMEDY}")
        with open(index, "rb") as stream:
            header = stream.read(HEADER_SIZE)
        if len(header) < HEADER_SIZE or not header.startswith(MAGIC):
            raise BrokenFile(index, NO_INDEX)
        try:
            contents = MMapIndexedDataset.Index(str(index))
        except (AssertionError, KeyError, OverflowError, ValueError, struct.error) as error:
            raise BrokenFile(index, NO_INDEX) from error
        self.sizes, self._type = np.array(contents.sizes), np.dtype(contents.dtype)  # a copy: `contents` closes its map
        if (self.sizes < 0).any():
            raise BrokenFile(index, NO_START)
        self.sentences, self.tokens = len(self.sizes), int(self.sizes.sum(dtype=np.int64))
        size, needed = self.data.stat().st_size, self.tokens * self._type.itemsize
        if size != needed:
            raise BrokenFile(self.data, f"{size} bytes, but {index.name} needs {needed}: {REMEDY}")
        if check_offsets:
            self._require_offsets(contents._pointers)

    def offsets(self) -> np.ndarray:
        """Return the first byte of each sentence in `data`, from the lengths."""
        offsets = np.cumsum(self.sizes, dtype=np.int64)
        offsets -= self.sizes  # in place: there may be many millions
        offsets *= self._type.itemsize
        return offsets

    def _require_offsets(self, found: np.ndarray) -> None:
        offsets = self.offsets()
        if (offsets == found).all():
            return
        if (offsets.astype(np.int32) == found).all():  # fairseq adds up lengths of 32 bits, and numpy 2 keeps the type
            problem = "its offsets are wrong above 2 GiB, as fairseq-preprocess --workers writes them under numpy 2"
            raise BrokenFile(self.index, f"{problem}: fairseq-capsule filter offsets {self.index.parent}")
        raise BrokenFile(self.index, NO_START)

    def piece(self, start: int, count: int) -> np.ndarray:
        """Return `count` tokens from token `start`, or fewer at the end."""
        return np.fromfile(self.data, self._type, count, offset=self._type.itemsize * start)

    def require_known_tokens(self, size: int) -> None:
        """Raise a BrokenFile if a token is not in a dictionary with `size` entries."""
        for start in range(0, self.tokens, PIECE):
            tokens = self.piece(start, PIECE)
            for place in np.flatnonzero((tokens < 0) | (tokens >= size)):
                token = f"token {start + place + 1} has the number {tokens[place]}"
                problem = f"{token}, but the dictionary has 0 to {size - 1}"
                raise BrokenFile(self.data, f"{problem}: {REMEDY} with the dictionary in its folder")

    def require_words(self) -> None:
        """Raise a BrokenFile if a sentence contains `<s>`, `<pad>` or `</s>` before its end.

        They were words of the text. A model takes them for padding or for the end of the sentence.
        """
        start = 0
        for first in range(0, len(self.sizes), SENTENCES):
            ends = np.cumsum(self.sizes[first : first + SENTENCES], dtype=np.int64)
            tokens = self.piece(start, ends[-1])
            control = tokens < len(CONTROL_SYMBOLS)
            last = ends[np.diff(ends, prepend=0) > 0] - 1
            control[last[tokens[last] == CONTROL_SYMBOLS.index("</s>")]] = False
            if control.any():
                place = int(np.argmax(control))
                sentence = first + int(np.searchsorted(ends, place, side="right")) + 1
                symbol = CONTROL_SYMBOLS[tokens[place]]
                raise BrokenFile(self.data, f"sentence {sentence} contains {symbol}: {IN_TEXT}")
            start += int(ends[-1])


def recompute_offsets(folder: Path) -> None:
    """Write the offsets of all indices of a folder again, computed from the lengths: fairseq's may be wrong.

    Everything that binarises text ends with it. An incomplete file, or data of another size than the lengths say, raise
    a BrokenFile. Files in fairseq's older format are left to fairseq.
    """
    for index in sorted(folder.glob("*.idx")):
        if _has_older_format(index):
            continue
        text = BinarisedText(index, check_offsets=False)
        with open(index, "r+b") as stream:
            stream.seek(HEADER_SIZE + text.sizes.nbytes)
            stream.write(text.offsets().tobytes())


def require_whole(folder: Path, split: str, source: str, target: str) -> Dict[str, BinarisedText]:
    """Return the two texts of a split, by language.

    Files in fairseq's older format (--dataset-impl cached) are skipped and left to fairseq. An incomplete
    file, or other numbers of sentences in the two languages, raise a BrokenFile.
    """
    texts: Dict[str, BinarisedText] = {}
    for language, index in indices(folder, split, source, target).items():
        if not _has_older_format(index):
            texts[language] = BinarisedText(index)
    for text in texts.values():
        first = next(iter(texts.values()))
        if text.sentences != first.sentences:
            problem = f"{text.sentences} sentences, but {first.index.name} has {first.sentences}"
            raise BrokenFile(text.index, f"{problem}: {REMEDY}")
    return texts


def _has_older_format(index: Path) -> bool:
    with open(index, "rb") as stream:
        return stream.read(len(OLD_MAGIC)) == OLD_MAGIC


def indices(folder: Path, split: str, source: str, target: str) -> Dict[str, Path]:
    """Return the indices of a split that exist, by language. If it has files of both directions, those of this one."""
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        found = {}
        for language in sorted((source, target)):
            index = folder / f"{split}.{pair}.{language}.idx"
            if index.is_file():
                found[language] = index
        if found:
            return found
    return {}
