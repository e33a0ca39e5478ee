"""Whether binarised data is the text beside it, token by token, in flat memory."""

from itertools import repeat
from typing import List, Optional

import numpy as np
from fairseq.data import Dictionary

from fairseq_capsule.data.binarised import PIECE, BinarisedText


class Comparison:
    """Compares the lines of a text, in their order, with the sentences of its binarised form."""

    def __init__(self, binarised: BinarisedText, dictionary: Dictionary):
        self.binarised = binarised
        self._numbers, self._unknown, self._end = dictionary.indices, dictionary.unk(), dictionary.eos()
        self._tokens: List[int] = []  # of the lines that wait to be compared
        self._sizes: List[int] = []
        self._sentences_before = self._tokens_before = 0
        self.first: Optional[int] = None  # the first line that differs, from 1

    def see(self, words: List[str]) -> None:
        """The next line."""
        if self.first is not None:
            return
        self._tokens.extend(map(self._numbers.get, words, repeat(self._unknown)))
        self._tokens.append(self._end)
        self._sizes.append(len(words) + 1)
        if len(self._tokens) >= PIECE:
            self._compare()

    def finish(self) -> Optional[int]:
        """The first line, from 1, whose sentence is missing or another one."""
        if self.first is None:
            self._compare()
        return self.first

    def _compare(self) -> None:
        there = self.binarised.sizes(self._sentences_before, len(self._sizes))
        wanted = np.array(self._sizes[: len(there)], dtype=there.dtype)
        other = np.flatnonzero(there != wanted)
        same = int(other[0]) if len(other) else len(there)  # sentences of the same length
        tokens = np.array(self._tokens[: int(wanted[:same].sum())], dtype=np.int64)
        differs = np.flatnonzero(tokens != self.binarised.piece(self._tokens_before, len(tokens)))
        if len(differs):
            same = int(np.searchsorted(np.cumsum(wanted), differs[0], side="right"))
        if same < len(self._sizes):
            self.first = self._sentences_before + same + 1
        self._sentences_before += len(self._sizes)
        self._tokens_before += len(self._tokens)
        self._tokens, self._sizes = [], []
