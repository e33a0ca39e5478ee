"""Filters of text. A filter maps a line of a language to a line; options are bound by `functools.partial`.

Their tools are loaded once in each process. Lines have no line feed.
"""

import functools
import logging
import re
import unicodedata
import warnings
from collections.abc import Mapping
from typing import Any

SPACES = re.compile(r"\s+")
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ufeff]")
_CHINESE = re.compile(r"(zh|zho|chi|cmn|yue)(_.*)?", re.IGNORECASE | re.DOTALL)
_MOSES_SPACES = str.maketrans("\t\v\f", "   ")


def is_chinese(language: str) -> bool:
    """Return whether jieba cuts the language, as `fairseq-capsule score` decides it."""
    return _CHINESE.fullmatch(language) is not None


def one_line(text: str) -> str:
    """Return a Chinese text without control and format characters, with white space as single spaces."""
    spaced = SPACES.sub(" ", text)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cf")).split())


def printable(language: str, line: str) -> str:
    """Make white space and control characters single spaces. Formatting characters stay: some scripts need them."""
    return " ".join(CONTROLS.sub(" ", line).split())


def lower(language: str, line: str) -> str:
    return line.lower()


def spell(language: str, line: str) -> str:
    """Separate the characters; a space becomes ▁, as in fairseq's `--bpe characters`."""
    return " ".join(line.replace(" ", "▁"))


def cut_chinese(language: str, line: str) -> str:
    """Clean a line and cut it into words."""
    return " ".join(word for word in _jieba().cut(one_line(line)) if word != " ")


def normalise(language: str, line: str, clean: bool = False) -> str:
    """Normalise punctuation by Moses; with `clean`, also drop unprintable characters."""
    if clean:
        line = line.translate(_MOSES_SPACES)
    return _normaliser(language, clean).normalize(f"{line}\n")  # its rules for the end of a line see the line feed


def tokenise(language: str, line: str, hyphens: bool = False) -> str:
    """Tokenise by Moses, with XML escapes; with `hyphens`, also at hyphens."""
    return _tokeniser(language).tokenize(line, return_str=True, aggressive_dash_splits=hyphens)


def words(language: str, line: str, hyphens: bool = False) -> str:
    """Cut Chinese into words. In other languages normalise punctuation, drop unprintable characters and tokenise."""
    if language == "zh":
        return cut_chinese(language, line)
    return tokenise(language, normalise(language, line, clean=True), hyphens)


def moses(language: str, line: str) -> str:
    """Normalise punctuation and tokenise; the language may have a suffix, as `pt_BR`."""
    language = language.partition("_")[0]
    return tokenise(language, normalise(language, line))


def subwords(language: str, line: str, codes: Mapping[str, str]) -> str:
    """Split words by the merges of subword-nmt in the file of the language."""
    return _merges(codes[language]).process_line(line)


def pieces(language: str, line: str, codes: Mapping[str, str]) -> str:
    """Split text into the pieces of the language's SentencePiece model."""
    return " ".join(_pieces(codes[language]).encode(line, out_type=str))


@functools.cache
def _jieba() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports what is deprecated
        import jieba
    jieba.setLogLevel(logging.WARNING)
    return jieba


@functools.cache
def _normaliser(language: str, clean: bool) -> Any:
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer(language, post_remove_control_chars=clean)


@functools.cache
def _tokeniser(language: str) -> Any:
    from sacremoses import MosesTokenizer

    return MosesTokenizer(language)


@functools.cache
def _merges(codes: str) -> Any:
    from subword_nmt.apply_bpe import BPE

    with open(codes, encoding="utf-8", newline="\n") as stream:
        return BPE(stream)


@functools.cache
def _pieces(model: str) -> Any:
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=model)
