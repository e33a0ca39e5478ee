"""Raw text to words and subwords, and back. What prepares a training text and what reads a text for a model call it.

A filter maps a line of a language to a line; options are bound by `functools.partial`. A tool is loaded when it is
needed, once in each process. Lines have no line feed.
"""

import functools
import itertools
import logging
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capsule_routing.errors import missing_library
from capsule_routing.text.languages import is_chinese, rules_of

if TYPE_CHECKING:
    from capsule_routing.text.moses import Moses

SPACES = re.compile(r"\s+")
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ufeff]")
_COMMAS = str.maketrans("ŞşŢţ", "ȘșȚț")  # for cedillas
_PLAIN = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")
# Chinese punctuation has its spacing in the character. Moses leaves a space on both sides.
_FULL_WIDTH = re.compile(" ?([‘’“”\u2026\u3001-\u3020\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]) ?")
_NUMBER = re.compile(r"(\d[,.:]) (?=\d)")
_TURKIC = re.compile(r"(tr|tur|az|aze|azj)([_-].*)?", re.IGNORECASE)  # i has a dot in both cases
SPACE = "▁"  # of SentencePiece, and of text that is split into characters

# --- filters ---------------------------------------------------------------------------------------------------------


def compose(line: str) -> str:
    """Return a text in Unicode's composed form, NFC, in which equal characters have equal codes."""
    return unicodedata.normalize("NFC", line)


def lower(language: str, line: str) -> str:
    """Return a line in lower case: `IŞIK` is `ışık` in Turkish and Azerbaijani."""
    return (line.replace("İ", "i").replace("I", "ı") if _TURKIC.fullmatch(language) else line).lower()


def clean_chinese(text: str) -> str:
    """Return a Chinese text without control and format characters, with white space as single spaces."""
    spaced = SPACES.sub(" ", text)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cf")).split())


def printable(line: str) -> str:
    """Make white space and control characters single spaces. Formatting characters stay: some scripts need them."""
    return " ".join(CONTROLS.sub(" ", line).split())


def spell(line: str) -> str:
    """Separate the characters; a space becomes ▁, as in fairseq's `--bpe characters`."""
    return " ".join(line.replace(" ", SPACE))


def cut_chinese(language: str, line: str) -> str:
    """Clean a line and cut it into words."""
    return " ".join(word for word in _jieba().cut(clean_chinese(line)) if word != " ")


def spell_romanian(line: str, diacritics: bool) -> str:
    """Write Romanian with commas below instead of cedillas, or without diacritics."""
    line = line.translate(_COMMAS)
    return line if diacritics else line.translate(_PLAIN)


def detokenise(language: str, words: str) -> str:
    """Join words of Moses or jieba to a text; XML escapes such as `&apos;` become characters."""
    rules = rules_of(language)
    text: str = _detokeniser(rules).detokenize(words.split())
    # jieba separates the commas and colons of numbers.
    return _NUMBER.sub(r"\1", _FULL_WIDTH.sub(r"\1", text)) if rules == "zh" else text


def split_into_subwords(language: str, line: str, subwords: str, codes: Mapping[str, str], protected: str = "") -> str:
    """Split a line by the file of its language, by merges of "subword-nmt" or into the pieces of SentencePiece."""
    return _kept_splitter(subwords, codes[language], protected)(line)


def keep_whole(protected: str, change: Callable[[str], str], line: str, between: str = " ") -> str:
    """Change the parts of a line around protected words, such as tags, which spaces separate; join all by `between`."""
    kept = protected.split()
    if not kept or not any(word in kept for word in line.split()):
        return change(line)
    parts: list[str] = []
    for is_kept, group in itertools.groupby(line.split(), kept.__contains__):
        words = list(group)
        parts += words if is_kept else [change(" ".join(words))]
    return between.join(parts)


# --- the preparation of a text ---------------------------------------------------------------------------------------

# What a prepare script does to text without a setting for it.
SCRIPTS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("prepare-headlines.sh", "prepare-lcsts.sh"), {"tokenise": "characters", "controls": "drop"}),
    **dict.fromkeys(("prepare.sh", "prepare-toy.sh"), {}),
    "prepare-iwslt14-de-en.sh": {"controls": "drop", "punctuation": "keep", "lower": "yes"},
    "prepare-multi30k.sh": {"tokenise": "moses", "lower": "yes"},
    "prepare-nist-zh-en.sh": {"controls": "drop", "lower": "yes"},
    **dict.fromkeys(("prepare-wmt14-en-de.sh", "prepare-wmt14-en-fr.sh"), {"controls": "drop", "hyphens": "split"}),
    "prepare-wmt16-en-ro.sh": {"controls": "drop", "diacritics": "remove"},
    "prepare-wmt17-zh-en.sh": {"controls": "drop"},
}


@dataclass(frozen=True)
class TextPreparation:
    """How the text of one language becomes subwords, and subwords of a model become text again.

    Attributes:
        language: its name in fairseq, such as `de` or `pt_BR`.
        tokenizer: moses, jieba, characters or none.
        drops_controls: whether control characters are dropped; otherwise they become spaces.
        keeps_punctuation: whether Moses does not normalise punctuation.
        splits_hyphens: whether Moses splits words at hyphens.
        diacritics: keep or remove those of Romanian; empty if its letters stay as they are.
        lower: whether the words are lower-cased.
        subwords: subword-nmt, sentencepiece or none.
        codes: the file of the merges or pieces; empty without subwords.
        protected: words that stay whole, separated by spaces, such as tags of the language to translate to.
    """

    language: str
    tokenizer: str
    drops_controls: bool = False
    keeps_punctuation: bool = False
    splits_hyphens: bool = False
    diacritics: str = ""
    lower: bool = False
    subwords: str = "none"
    codes: str = ""
    protected: str = ""

    def words(self, line: str) -> str:
        """Return the words of a raw line, separated by spaces, as a prepare script writes them before subwords."""
        return keep_whole(self.protected, self._words, line, f" {SPACE} " if self.tokenizer == "characters" else " ")

    def _words(self, line: str) -> str:
        line = compose(line)
        if not self.drops_controls:
            line = printable(line)
        if self.tokenizer == "moses":
            line = moses(
                rules_of(self.language),
                not self.keeps_punctuation,
                self.drops_controls,
                self.splits_hyphens,
                self.diacritics,
            ).words(line)
        elif self.tokenizer == "jieba":
            line = cut_chinese(self.language, line)
        elif self.tokenizer == "characters":
            line = spell(clean_chinese(line) if self.drops_controls else line)
        return lower(self.language, line) if self.lower else line

    def encode(self, line: str) -> str:
        """Return the subwords of a raw line, separated by spaces. A UserError says if a library is not installed."""
        try:
            line = self.words(re.sub("[\r\n]+", " ", line))  # a raw line of a prepared folder has neither
            return line if self.subwords == "none" else self._split(line)
        except ModuleNotFoundError as error:
            raise missing_library(error) from error

    @functools.cached_property
    def _split(self) -> Callable[[str], str]:
        """By merges or pieces. They are read once: a folder that is made anew would no longer fit a loaded model."""
        return _splitter(self.subwords, self.codes, self.protected)

    def decode(self, line: str) -> str:
        """Return the text of a line of subwords. Subwords that are joined already, by `--remove-bpe`, stay so."""
        if self.subwords == "subword-nmt":
            line = f"{line} ".replace("@@ ", "").rstrip(" ")
        elif self.subwords == "sentencepiece" and SPACE in line:
            line = line.replace(" ", "").replace(SPACE, " ").strip()
        if self.tokenizer == "characters":
            return line.replace(" ", "").replace(SPACE, " ").strip()
        return line if self.tokenizer == "none" else detokenise(self.language, line)

    def letters(self, line: str) -> str:
        """Return a raw line in the letters of the training text, to compare a translation with it."""
        line = self._spelt(compose(line))
        return lower(self.language, line) if self.lower else line

    def _spelt(self, line: str) -> str:
        return spell_romanian(line, self.diacritics == "keep") if self.diacritics else line


def preparation_of(settings: Mapping[str, str], language: str) -> TextPreparation:
    """Return the preparation of a language up to its words, by the settings of a prepare script, `script` among them.

    Two values of `tokenise` belong to the languages `source` and `target` of the settings.
    """
    known = {**SCRIPTS[settings["script"]], **settings}
    first, _, second = known.get("tokenise", "jieba").partition(",")
    tokenizer = second if second and language != settings.get("source") else first
    if tokenizer == "jieba" and not second and not is_chinese(language):
        tokenizer = "moses"
    return TextPreparation(
        language,
        tokenizer,
        drops_controls=known.get("controls") == "drop",
        keeps_punctuation=known.get("punctuation") == "keep",
        splits_hyphens=known.get("hyphens") == "split",
        diacritics=known.get("diacritics", "") if language == "ro" else "",
        lower=known.get("lower") == "yes",
        protected=known.get("protect", ""),
    )


def split_into_words(language: str, line: str, settings: Mapping[str, str]) -> str:
    """Split a raw line into words, by the settings of a prepare script: the filter of its first stage."""
    return _kept_preparation(language, tuple(settings.items())).words(line)


@functools.cache
def _kept_preparation(language: str, settings: tuple[tuple[str, str], ...]) -> TextPreparation:
    return preparation_of(dict(settings), language)


# --- tools -----------------------------------------------------------------------------------------------------------


@functools.cache
def _jieba() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports what is deprecated
        import jieba
    jieba.setLogLevel(logging.WARNING)
    return jieba


@functools.cache
def moses(
    language: str,
    normalises: bool = True,
    drops_controls: bool = False,
    splits_hyphens: bool = False,
    diacritics: str = "",
) -> "Moses":
    """Return Moses for a language, with the options of a `TextPreparation`."""
    from capsule_routing.text.moses import Moses

    spell = functools.partial(spell_romanian, diacritics=diacritics == "keep") if diacritics else None
    return Moses(language, normalises, drops_controls, splits_hyphens, spell)


@functools.cache
def _detokeniser(language: str) -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(language)


def _splitter(subwords: str, codes: str, protected: str) -> Callable[[str], str]:
    """Read the merges of subword-nmt or the pieces of SentencePiece, and return what splits a line by them.

    A model of SentencePiece has the protected words as pieces.
    """
    if subwords == "subword-nmt":
        from subword_nmt.apply_bpe import BPE

        with open(codes, encoding="utf-8", newline="\n") as stream:
            return functools.partial(keep_whole, protected, BPE(stream).process_line)
    import sentencepiece

    return functools.partial(_pieces, sentencepiece.SentencePieceProcessor(model_file=codes))


def _pieces(model: Any, line: str) -> str:
    return " ".join(model.encode(line, out_type=str))


_kept_splitter = functools.cache(_splitter)
