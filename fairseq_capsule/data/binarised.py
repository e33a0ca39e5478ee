"""Reading of the files of fairseq-preprocess in pieces: `.idx` (lengths of sentences) and `.bin` (tokens).

An index has a header (magic bytes, version, type of a token, number of sentences); then for each sentence its number of
tokens, in 4 bytes; then for each sentence its first byte in the `.bin` file, in 8 bytes. All numbers are little-endian.
"""

import struct
from pathlib import Path
from typing import Dict, Tuple

import numpy as np

from capsule_routing.errors import UserError

MAGIC, VERSION = b"MMIDIDX\x00\x00", 1
OLD_MAGIC = b"TNTIDX\x00\x00"
HEADER = struct.Struct("<9sQBQ")
SIZE, POINTER = np.dtype("<i4"), np.dtype("<i8")
# fairseq's codes for the types that versions of fairseq-preprocess write.
TOKEN_TYPES: Dict[int, np.dtype] = {4: np.dtype("<i4"), 5: np.dtype("<i8"), 8: np.dtype("<u2"), 9: np.dtype("<u4")}
PIECE = 1 << 18  # numbers read at a time
SENTENCES = 1 << 12  # sentences read at a time
CONTROL_SYMBOLS = ("<s>", "<pad>", "</s>")  # by their numbers in every dictionary of fairseq
IN_TEXT = "fairseq's control symbols may not be words; replace them in the text, and binarise it again"
REMEDY = "binarise the text again"


class BrokenFile(UserError):
    """A file with wrong content: its path, and the problem, which also states what to do."""

    def __init__(self, path: Path, problem: str):
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class BinarisedText:
    """One language of a split: its files `index` and `data`, and its numbers of `sentences` and `tokens`.

    The end-of-sentence tokens count too.
    """

    def __init__(self, index: Path):
        """Check in constant memory that the files are complete and belong together; otherwise raise a BrokenFile."""
        self.index, self.data = index, index.with_suffix(".bin")
        for path in (self.index, self.data):
            if not path.is_file():
                raise BrokenFile(path, f"missing: {REMEDY}")
        self.sentences, self._type = self._read_header()
        self.tokens = self._sum_of_sizes()
        size, needed = self.data.stat().st_size, self.tokens * self._type.itemsize
        if size != needed:
            raise BrokenFile(self.data, f"{size} bytes, but {index.name} needs {needed}: {REMEDY}")

    def sizes(self, start: int, count: int) -> np.ndarray:
        """Return the numbers of tokens of `count` sentences from sentence `start`, or of fewer at the end."""
        count = max(0, min(count, self.sentences - start))
        return np.fromfile(self.index, SIZE, count, offset=HEADER.size + SIZE.itemsize * start)

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
        for first in range(0, self.sentences, SENTENCES):
            ends = np.cumsum(self.sizes(first, SENTENCES), dtype=np.int64)
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

    def _read_header(self) -> Tuple[int, np.dtype]:
        """Return the number of sentences and the type of a token."""
        size = self.index.stat().st_size
        with open(self.index, "rb") as stream:
            header = stream.read(HEADER.size)
        magic, version, code, sentences = HEADER.unpack(header.ljust(HEADER.size, b"\0"))
        if (magic, version) != (MAGIC, VERSION) or code not in TOKEN_TYPES:
            raise BrokenFile(self.index, f"not a whole index of fairseq-preprocess (--dataset-impl mmap): {REMEDY}")
        needed = HEADER.size + sentences * (SIZE.itemsize + POINTER.itemsize)
        if size != needed:
            raise BrokenFile(self.index, f"{size} bytes, but its {sentences} sentences need {needed}: {REMEDY}")
        return sentences, TOKEN_TYPES[code]

    def _sum_of_sizes(self) -> int:
        """Return the number of all tokens, and check that each sentence starts where the previous one ends."""
        tokens, pointers = 0, HEADER.size + SIZE.itemsize * self.sentences
        for start in range(0, self.sentences, PIECE):
            sizes = self.sizes(start, PIECE).astype(POINTER)
            starts = np.fromfile(self.index, POINTER, len(sizes), offset=pointers + POINTER.itemsize * start)
            ends = tokens + np.cumsum(sizes)
            for number in np.flatnonzero((sizes < 0) | (starts != self._type.itemsize * (ends - sizes))):
                problem = f"sentence {start + number + 1} does not start where the previous one ends: {REMEDY}"
                raise BrokenFile(self.index, problem)
            tokens = int(ends[-1])
        return tokens


def require_whole(folder: Path, split: str, source: str, target: str) -> Dict[str, BinarisedText]:
    """Return the two texts of a split, by language.

    Files in fairseq's older format (--dataset-impl cached) are skipped and left to fairseq. An incomplete file, or
    other numbers of sentences in the two languages, raise a BrokenFile.
    """
    texts: Dict[str, BinarisedText] = {}
    for language, index in indices(folder, split, source, target).items():
        with open(index, "rb") as stream:
            if stream.read(len(OLD_MAGIC)) != OLD_MAGIC:
                texts[language] = BinarisedText(index)
    for text in texts.values():
        first = next(iter(texts.values()))
        if text.sentences != first.sentences:
            problem = f"{text.sentences} sentences, but {first.index.name} has {first.sentences}"
            raise BrokenFile(text.index, f"{problem}: {REMEDY}")
    return texts


def indices(folder: Path, split: str, source: str, target: str) -> Dict[str, Path]:
    """Return the indices of a split that exist, by language. If it has files of both directions, those of this one."""
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        files = {language: folder / f"{split}.{pair}.{language}.idx" for language in sorted((source, target))}
        found = {language: index for language, index in files.items() if index.is_file()}
        if found:
            return found
    return {}
