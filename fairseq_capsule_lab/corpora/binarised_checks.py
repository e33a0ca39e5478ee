"""Comparison of binarised data with its text, token by token, in constant memory."""

from itertools import repeat
from typing import List, Optional

import numpy as np
from fairseq.data import Dictionary

from fairseq_capsule.data.binarised import PIECE, BinarisedText


class Comparison:
    """Compare the lines of a text, in order, with the sentences of its binarised form.

    Attributes:
        first: the first line that differs, counted from 1, or None.
    """

    def __init__(self, binarised: BinarisedText, dictionary: Dictionary):
        self.binarised = binarised
        self._numbers, self._unknown, self._end = dictionary.indices, dictionary.unk(), dictionary.eos()
        self._tokens: List[int] = []  # tokens of the lines that are not compared yet
        self._sizes: List[int] = []
        self._sentences_before = self._tokens_before = 0
        self.first: Optional[int] = None

    def see(self, words: List[str]) -> None:
        """Take the next line."""
        if self.first is not None:
            return
        self._tokens.extend(map(self._numbers.get, words, repeat(self._unknown)))
        self._tokens.append(self._end)
        self._sizes.append(len(words) + 1)
        if len(self._tokens) >= PIECE:
            self._compare()

    def finish(self) -> Optional[int]:
        """Return the first line, counted from 1, that has a missing or different sentence, or None."""
        if self.first is None:
            self._compare()
        return self.first

    def _compare(self) -> None:
        there = self.binarised.sizes(self._sentences_before, len(self._sizes))
        expected = np.array(self._sizes[: len(there)], dtype=there.dtype)
        other = np.flatnonzero(there != expected)
        same = int(other[0]) if len(other) else len(there)  # sentences of the same length
        tokens = np.array(self._tokens[: int(expected[:same].sum())], dtype=np.int64)
        differs = np.flatnonzero(tokens != self.binarised.piece(self._tokens_before, len(tokens)))
        if len(differs):
            same = int(np.searchsorted(np.cumsum(expected), differs[0], side="right"))
        if same < len(self._sizes):
            self.first = self._sentences_before + same + 1
        self._sentences_before += len(self._sizes)
        self._tokens_before += len(self._tokens)
        self._tokens, self._sizes = [], []
