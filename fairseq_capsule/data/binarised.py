"""Reading what fairseq-preprocess wrote, in pieces: `.idx`, the lengths of the sentences, and `.bin`, their tokens.

An index is, with all numbers little-endian: 9 bytes `MMIDIDX`, NUL, NUL; the version as 8 bytes; the type of a token as
1 byte; the number of sentences as 8 bytes; for each sentence its number of tokens as 4 bytes; and for each sentence the
byte of the `.bin` file where it starts, as 8 bytes.
"""

import struct
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import numpy as np

from fairseq_capsule.errors import UserError

MAGIC, VERSION = b"MMIDIDX\x00\x00", 1
OLD_MAGIC = b"TNTIDX\x00\x00"
HEADER = struct.Struct("<9sQBQ")
SIZE, POINTER = np.dtype("<i4"), np.dtype("<i8")
# fairseq's codes of the types that fairseq-preprocess has written.
TOKEN_TYPES: Dict[int, np.dtype] = {4: np.dtype("<i4"), 5: np.dtype("<i8"), 8: np.dtype("<u2"), 9: np.dtype("<u4")}
PIECE = 1 << 18  # numbers that are read at a time
REMEDY = "binarise the text again"


class BrokenFile(UserError):
    """A file that does not hold what it should: `path`, and what is the `problem` with it."""

    def __init__(self, path: Path, problem: str):
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class BinarisedText:
    """One language of a split.

    Attributes:
        index, data: its two files.
        sentences, tokens: how many it has, ends of sentences included.
    """

    def __init__(self, index: Path):
        """Check that the two files are whole and belong together, in flat memory.

        Raises:
            BrokenFile: they are not.
        """
        self.index, self.data = index, index.with_suffix(".bin")
        for path in (self.index, self.data):
            if not path.is_file():
                raise BrokenFile(path, f"missing: {REMEDY}")
        self.sentences, self._type = self._header()
        self.tokens = self._sum_of_sizes()
        there, wanted = self.data.stat().st_size, self.tokens * self._type.itemsize
        if there != wanted:
            raise BrokenFile(self.data, f"{there} bytes, {index.name} says {wanted}: {REMEDY}")

    def sizes(self, start: int, count: int) -> np.ndarray:
        """The numbers of tokens of `count` sentences, or of as many as there are, from sentence `start` on."""
        count = max(0, min(count, self.sentences - start))
        return np.fromfile(self.index, SIZE, count, offset=HEADER.size + SIZE.itemsize * start)

    def piece(self, start: int, count: int) -> np.ndarray:
        """`count` tokens, or as many as there are, from token `start` on."""
        count = max(0, min(count, self.tokens - start))
        return np.fromfile(self.data, self._type, count, offset=self._type.itemsize * start)

    def require_known_tokens(self, size: int) -> None:
        """Refuse numbers of tokens that a dictionary of `size` entries does not have.

        Raises:
            BrokenFile: there is one.
        """
        for start in range(0, self.tokens, PIECE):
            tokens = self.piece(start, PIECE)
            wrong = np.flatnonzero((tokens < 0) | (tokens >= size))
            if len(wrong):
                place, token = start + int(wrong[0]) + 1, tokens[wrong[0]]
                raise BrokenFile(
                    self.data,
                    f"token {place} has the number {token}, the dictionary has 0 to {size - 1}: binarise the text "
                    "again with the dictionary beside it",
                )

    def _header(self) -> Tuple[int, np.dtype]:
        size = self.index.stat().st_size
        with open(self.index, "rb") as stream:
            header = stream.read(HEADER.size)
        if header[: len(MAGIC)] != MAGIC[: len(header)] or not header:
            raise BrokenFile(self.index, f"no index of fairseq-preprocess (--dataset-impl mmap): {REMEDY}")
        if len(header) < HEADER.size:
            raise BrokenFile(self.index, f"cut short, {size} bytes: {REMEDY}")
        _, version, code, sentences = HEADER.unpack(header)
        if version != VERSION:
            raise BrokenFile(self.index, f"version {version} of the format, not {VERSION}: {REMEDY}")
        if code not in TOKEN_TYPES:
            raise BrokenFile(self.index, f"no type of tokens has the code {code}: {REMEDY}")
        wanted = HEADER.size + sentences * (SIZE.itemsize + POINTER.itemsize)
        if size != wanted:
            raise BrokenFile(self.index, f"{size} bytes, its {sentences} sentences need {wanted}: {REMEDY}")
        return sentences, TOKEN_TYPES[code]

    def _sum_of_sizes(self) -> int:
        """The number of all tokens; the sentences must stand one behind the other."""
        tokens, pointers = 0, HEADER.size + SIZE.itemsize * self.sentences
        for start in range(0, self.sentences, PIECE):
            sizes = self.sizes(start, PIECE).astype(POINTER)
            found = np.fromfile(self.index, POINTER, len(sizes), offset=pointers + POINTER.itemsize * start)
            ends = tokens + np.cumsum(sizes)
            wanted = self._type.itemsize * (ends - sizes)
            wrong = np.flatnonzero((sizes < 0) | (found != wanted))
            if len(wrong):
                raise BrokenFile(
                    self.index, f"sentence {start + wrong[0] + 1} is not behind the one before it: {REMEDY}"
                )
            tokens = int(ends[-1])
        return tokens


def require_whole(folder: Path, split: str) -> Dict[str, BinarisedText]:
    """Language → text of a split of a folder that fairseq-preprocess made, all files being whole.

    Those of fairseq's older format (--dataset-impl cached) are left to fairseq.

    Raises:
        BrokenFile: one is not whole, or the languages have different numbers of sentences.
    """
    texts: Dict[str, BinarisedText] = {}
    for index in binarised_texts(folder, split):
        with open(index, "rb") as stream:
            if stream.read(len(OLD_MAGIC)) != OLD_MAGIC:
                texts[language_of(index)] = BinarisedText(index)
    for text in texts.values():
        first = next(iter(texts.values()))
        if text.sentences != first.sentences:
            problem = f"{text.sentences} sentences, {first.index.name} has {first.sentences}"
            raise BrokenFile(text.index, f"{problem}: {REMEDY}")
    return texts


def binarised_texts(folder: Path, split: str) -> List[Path]:
    """The indices of a split, of all languages, in a folder that fairseq-preprocess made."""
    return sorted(path for path in _indices(folder) if path.name.partition(".")[0] == split)


def language_of(index: Path) -> str:
    """`de` of `test.en-de.de.idx`."""
    return index.name.split(".")[-2]


def _indices(folder: Path) -> Iterator[Path]:
    """`SPLIT.SOURCE-TARGET.LANGUAGE.idx`, the language being one of the two; not those of word alignments."""
    for path in folder.glob("*.*-*.*.idx"):
        _, pair, language, _ = path.name.rsplit(".", 3)
        if language in pair.split("-"):
            yield path


def splits_of(folder: Path) -> List[str]:
    """The splits of which a folder has an index."""
    return sorted({path.name.partition(".")[0] for path in _indices(folder)})
