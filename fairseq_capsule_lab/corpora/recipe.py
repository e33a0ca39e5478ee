"""A page of a corpus: languages, sources, options with their defaults, the settings that they become, and its help."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from capsule_routing.errors import UserError
from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.corpora.archives import mirror
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.unknown import MOST
from fairseq_capsule_lab.manifests import fingerprint
from fairseq_capsule_lab.values import checked_integer

Options = dict[str, Any]  # by name; None for what is neither given nor has a default
Text = tuple[str, str]  # source and target, each a path or an address
Words = tuple[str, ...]
Find = Callable[[str], Path]  # returns the path of the archive with an address
ADDRESSES = "the addresses in this script"
# Of every corpus, whether or not it has an option for it.
DEFAULTS = {
    **dict.fromkeys(("from", "limit", "max-length", "ratio", "codes", "dict")),
    **{"bpe": "subword-nmt", "share": "joint"},
}


class Option(NamedTuple):
    """An option. If `kind` is int, its value is at least 1; if it is Path, an existing folder; if it is Text or
    Words, it is given several times.
    """

    name: str
    kind: Any  # int, float, str, Path, Text, bool for a flag, the choices, or a function of the text
    value: str  # what the help calls it; empty for a flag and for choices
    help: str
    default: Any = None
    required: bool = False


class Corpus(NamedTuple):
    """What a recipe makes of the choices of a user."""

    languages: tuple[str, str]  # source and target
    raw: Callable[[RawTexts], None]  # fills the first folder
    settings: Mapping[str, str] = {}  # before those of the options
    bound: Sequence[str] | None = None  # the options that are settings, in their order; None: all of the recipe
    address: str = ADDRESSES  # where archives come from, in the settings
    vocabulary: int = 0  # the largest number of characters in the dictionary, if the tokens are characters
    # Takes a sample of the training text of each language that Moses cuts, if Moses may be wrong for it.
    sample: Callable[[Find], Mapping[str, Sequence[str]]] | None = None
    joined_dictionary: bool = True  # whether languages with joint merges have one dictionary

    def sides(self, options: Options) -> Sequence[str]:
        """Return what has its own merges: each language, or "" for both together."""
        return self.languages if options["share"] == "separate" else ("",)

    def dictionaries(self, options: Options) -> Sequence[str]:
        """Return what has its own dictionary, as `sides`."""
        return self.sides(options) if self.joined_dictionary else self.languages


class Recipe(NamedTuple):
    """A corpus as a command. `corpus` checks its own options and sets their final values."""

    script: str  # its name in settings and in its help; `text.preparation` says how its text is cut into words
    title: str
    corpus: Callable[[Options], Corpus]
    options: Sequence[Option]  # in the order of the settings
    notes: str  # how the text is made
    results: Mapping[str, str]  # the help of what is made besides OUT/bin and the manifest
    sets: str = "train, valid, test"  # that are binarised

    def settings(self, corpus: Corpus, options: Options) -> dict[str, str]:
        """Return the settings of a corpus and its options."""
        names = [option.name for option in self.options] if corpus.bound is None else corpus.bound
        chosen = {name: options[name] for name in names}
        sides = {"codes": corpus.sides(options), "dict": corpus.dictionaries(options)}
        return {**corpus.settings, **settings_of_options(chosen, sides, corpus.address)}


def settings_of_options(
    options: Mapping[str, Any], sides: Mapping[str, Sequence[str]], address: str = ADDRESSES
) -> dict[str, str]:
    """Return what a folder remembers of options, in their order.

    Args:
        sides: what has its own file of `codes` and of `dict`.
        address: where archives come from without --from.
    """
    settings: dict[str, str] = {}
    for name, value in options.items():
        if name == UNKNOWN_UP_TO.name:
            continue  # it changes no file
        if name == "from":
            settings["from"] = value or mirror() or address
        elif name in sides:
            hashes = (fingerprint(Path(of_side(value, side))) if value else "learnt" for side in sides[name])
            settings[name] = " ".join(hashes)
        elif name != "bpe" or value != "subword-nmt":  # the default is no setting
            value = f"{value:g}" if isinstance(value, float) else value
            settings[name] = "none" if value is None else str(value)
    return settings


# --- options that corpora share --------------------------------------------------------------------------------------


def length(text: str) -> int | None:
    """Return a maximum length. `none` is none."""
    return None if text == "none" else checked_integer("--max-length", text)


ARCHIVES = "The folder of the archives, named as published; without it they are downloaded (MIRROR=URL: from there):"
RAW = "the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages"
CODES = {"OUT/codes, OUT/dict.txt": "the merges and the dictionary; with --share separate those of each language"}

TOOLS = ("subword-nmt", "sentencepiece", "sentencepiece-bpe")
SHARE = "One list of merges and one dictionary for both languages, or for each its own."
LONGEST = (
    "Leave out training pairs with more than N words in a sentence. With SentencePiece pieces are counted. none turns "
    "this limit and the ratio's off."
)
RATIO = "Leave out training pairs with a sentence of more than X times the other's words."
EARLIER_CODES = (
    "OUT/codes of an earlier run, or its OUT/sentencepiece.model, needed with its --dict to start from a checkpoint of "
    "that run. With --share separate the file of each language has the language in its name, such as OUT/codes.en."
)
EARLIER_DICT = "OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run."
UNKNOWN = "Accept that so much of the training text is unknown to the dictionary."

BPE = Option("bpe", TOOLS, "", "The tool; sentencepiece is its unigram model.", "subword-nmt")
CODES_FILE = Option("codes", str, "FILE", EARLIER_CODES)
DICT_FILE = Option("dict", str, "FILE", EARLIER_DICT)
UNKNOWN_UP_TO = Option("unknown-up-to", float, "PERCENT", UNKNOWN, MOST)
LIMIT = Option("limit", int, "N", "Only the first N training pairs, for a quick test.")


def merges_option(number: int) -> Option:
    return Option("merges", int, "N", "Merges of subword-nmt, or pieces of SentencePiece.", number)


def share_option(default: str) -> Option:
    return Option("share", ("joint", "separate"), "", SHARE, default)


def length_options(longest: int) -> list[Option]:
    return [Option("max-length", length, "N", LONGEST, longest), Option("ratio", float, "X", RATIO, defaults.RATIO)]


def options_of_archives(merges: int, share: str, longest: int) -> list[Option]:
    """Return the last options of a corpus that is made from archives or files with known names."""
    subwords = [merges_option(merges), BPE, share_option(share)]
    return [LIMIT, *subwords, *length_options(longest), CODES_FILE, DICT_FILE, UNKNOWN_UP_TO]


# --- values of options -----------------------------------------------------------------------------------------------


def require_library(module: str, extra: str) -> None:
    """Raise a UserError if a Python module of an extra is not installed."""
    if importlib.util.find_spec(module) is None:
        fix = f"pip install 'fairseq-capsule[{extra}]', or activate the environment that has it"
        raise UserError(f"{module} is not installed: {fix}")


def of_side(file: str, side: str) -> str:
    """Return the name of a side's file: codes → codes.LANG; dict.txt → dict.LANG.txt; the name itself for both."""
    ending = next((ending for ending in (".txt", ".model") if file.endswith(ending)), "")
    return f"{file.removesuffix(ending)}.{side}{ending}" if side else file


def require_earlier_files(options: Options, sides: Sequence[str], dictionaries: Sequence[str]) -> None:
    """Refuse one of --codes and --dict without the other, and files that are none.

    `sides` are those of the codes, `dictionaries` those of the dictionaries.
    """
    if options["bpe"] == "none" and options["codes"]:
        raise UserError("--codes: characters have no codes; give only --dict")
    if options["bpe"] != "none" and bool(options["codes"]) != bool(options["dict"]):
        raise UserError("--codes and --dict belong together: give both files of the earlier run, or neither")
    for side in sides if options["codes"] and options["bpe"] == "subword-nmt" else ():
        file = of_side(options["codes"], side)
        with open(file, "rb") as stream:
            if stream.read(9) != b"#version:":
                raise UserError(f"--codes {file}: not codes of subword-nmt (they begin with '#version:')")
    for side in dictionaries if options["dict"] else ():
        file = of_side(options["dict"], side)
        if any(line.endswith(b" #fairseq:overwrite") for line in Path(file).read_bytes().split(b"\n")):
            raise UserError(f"--dict {file}: #fairseq:overwrite: remove the symbol that is there twice")
