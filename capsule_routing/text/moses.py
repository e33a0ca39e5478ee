"""Punctuation and words of Moses as sacremoses makes them. What it makes of a chunk between spaces is remembered."""

import functools
import unicodedata
from collections.abc import Callable
from typing import Any, Optional

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

REMEMBERED = 2**17  # chunks, some tens of megabytes
_SPACES = str.maketrans("\t\v\f", "   ")
# Every rule of the normaliser needs one of these, controls included. A line without them stays as it is.
_NORMALISED = regex.compile("[\\p{C}()%:;`\"'„“”«»–—´‘’‚…\u00a0]|  ")
# What begins or ends a chunk may be moved, or split otherwise, by what stands beyond the space.
_AT_START = frozenset(").!?:;,%'`´‘’‚")
_AT_END = frozenset("('`´‘’‚")
# A letter with combining marks that Unicode has no letter for: Moses would separate the marks.
_MARKS = "\u0300-\u036f"
_MARKED = regex.compile(f"[{_MARKS}]")
_MARKED_LETTER = regex.compile(f"[^\\W_][{_MARKS}]+")
# Characters of the same kind, of scripts that no text here is in, stand for them while Moses works.
_STAND_INS = {
    "Lu": "".join(map(chr, range(0x2C00, 0x2C2F))),  # Glagolitic
    "Ll": "".join(map(chr, range(0x2C30, 0x2C5F))),
    "Nd": "".join(map(chr, range(0x07C0, 0x07CA))),  # NKo
}
_OTHER_STAND_INS = "".join(map(chr, range(0x1401, 0x166D)))  # Canadian syllables, which have no case
_HIDDEN = regex.compile(r"[\p{C}\s]")  # may be dropped, or become spaces


class _Tokeniser(MosesTokenizer):
    """sacremoses's tokeniser. It builds these sets of thousands of characters anew for each word with a full stop."""

    _lower, _alphabetic = frozenset(MosesTokenizer.IsLower), frozenset(MosesTokenizer.IsAlpha)

    def __init__(self, language: str):
        super().__init__(language)
        self._alphabetic = frozenset(self.IsAlpha)  # with the characters of the language

    def islower(self, text: str) -> bool:
        return self._lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self._alphabetic.isdisjoint(text)


class Moses:
    """Moses for lines of a language.

    Args:
        language: its name in Moses, such as `de`.
        normalises: whether punctuation is normalised.
        drops_controls: whether control and format characters are dropped after that.
        splits_hyphens: whether words are split at hyphens.
        spell: changes the letters of normalised text before it is tokenised.
    """

    def __init__(
        self,
        language: str,
        normalises: bool = True,
        drops_controls: bool = False,
        splits_hyphens: bool = False,
        spell: Optional[Callable[[str], str]] = None,
    ):
        self._normalises, self._drops_controls, self._splits_hyphens = normalises, drops_controls, splits_hyphens
        self._spell = spell
        self._normaliser = MosesPunctNormalizer(language, post_remove_control_chars=drops_controls)
        self._tokeniser = _Tokeniser(language)
        self._letters = frozenset(self._tokeniser.IsAlnum)
        following = dict.fromkeys(_Tokeniser._lower, " x")
        self._contexts = {**following, **dict.fromkeys("0123456789", " 0")}  # by the next chunk's first character
        self._remembered = functools.lru_cache(REMEMBERED)(self._words_of_chunk)

    def normalise(self, line: str) -> str:
        """Normalise the punctuation of a line."""
        if self._drops_controls:
            line = line.translate(_SPACES)
        if not _NORMALISED.search(line):
            return line.strip()
        return self._normaliser.normalize(f"{line}\n")  # its rules for the end of a line see the line feed

    def words(self, line: str) -> str:
        """Return the words of a raw line, separated by spaces, with XML escapes.

        No rule of Moses looks beyond the spaces around a chunk, except that the full stop of a word also depends on
        whether a small letter, a digit, anything else or nothing follows. A line is tokenised as a whole if what begins
        or ends one of its chunks may depend on more, or if it has combining marks.
        """
        if _MARKED.search(line):
            return self._words_of_line(line)
        chunks = line.split(" ")
        words = []
        for place, chunk in enumerate(chunks, 1):
            following = " X" if place < len(chunks) else ""
            if following and "." in chunk:
                following = self._contexts.get(chunks[place][:1], following)
            found = self._remembered(chunk, following)
            if found is None:
                return self._words_of_line(line)
            words.append(found)
        return " ".join(words)

    def _words_of_line(self, line: str) -> str:
        if self._normalises:
            line = self.normalise(line)
        if self._spell:
            line = self._spell(line)
        stand_ins = _stand_ins(line)
        line = _MARKED_LETTER.sub(lambda letter: stand_ins.get(letter[0], letter[0]), line)
        hyphens = self._splits_hyphens
        words: str = self._tokeniser.tokenize(line, return_str=True, aggressive_dash_splits=hyphens)
        return words.translate({ord(stand_in): letter for letter, stand_in in stand_ins.items()})

    def _words_of_chunk(self, chunk: str, following: str) -> Any:
        """Return the words of a chunk, or None if they may depend on more than what follows."""
        if not chunk or chunk[0] in _AT_START or chunk[-1] in _AT_END or _HIDDEN.search(chunk):
            return None
        if not self._spell and self._letters.issuperset(chunk) and "MULTI" not in chunk:  # a mark of sacremoses
            return chunk
        words = self._words_of_line(f"x {chunk}{following}")
        return words[2 : len(words) - len(following)]


def _stand_ins(line: str) -> dict[str, str]:
    """Return a character for each letter with marks in a line: one that is not in the line."""
    stand_ins: dict[str, str] = {}
    used = set(line)
    for letter in sorted(set(_MARKED_LETTER.findall(line))):
        of_kind = _STAND_INS.get(unicodedata.category(letter[0]), "") + _OTHER_STAND_INS
        free = next((character for character in of_kind if character not in used), None)
        if free:
            stand_ins[letter] = free
            used.add(free)
    return stand_ins
