"""A recipe: a corpus as a page beside the paper, with its options, help, sources and filters."""

import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

from fairseq_capsule_lab.corpora import subwords
from fairseq_capsule_lab.corpora.archives import mirror
from fairseq_capsule_lab.corpora.parallel import Filter
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.errors import LabError, whole
from fairseq_capsule_lab.stages import fingerprint

Options = dict[str, Any]  # by name; "" for what is neither given nor has a default
Find = Callable[[str], Path]  # returns the path of the archive with an address
# Of every corpus, whether or not it has an option for it.
DEFAULTS = {
    **dict.fromkeys(("from", "limit", "max-length", "ratio", "codes", "dict"), ""),
    **{"bpe": "subword-nmt", "merges": "32000", "share": "joint"},
}

# --- help ------------------------------------------------------------------------------------------------------------

ARCHIVES = "the folder of the archives, named as published; without it they are downloaded (MIRROR=URL: from there):"
BPE = "subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe"
JOINT = "joint (default): one list of merges and one dictionary for both languages; or separate"
SEPARATE = "separate (default): merges and a dictionary for each language; or joint: the same for both"
LONGEST = "leave out training pairs with more than N words in a sentence"
RATIO = "leave out training pairs with a sentence of more than X times the other's words"
EARLIER_CODES = "OUT/codes of an earlier run, needed with its --dict to start from a checkpoint of that run"
EARLIER_DICT = "OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run"
LIMIT = "only the first N training pairs, for a quick test"
RAW = "the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages"
CODES = {"OUT/codes, OUT/dict.txt": "the merges and the dictionary"}
CODES_OF_SIDES = {"OUT/codes.zh, OUT/codes.en, OUT/dict.zh.txt, OUT/dict.en.txt": "the merges and the dictionaries"}

# --- recipes ---------------------------------------------------------------------------------------------------------


class Corpus(NamedTuple):
    """What a recipe makes of the choices of a user."""

    languages: tuple[str, str]  # source and target
    raw: Callable[[RawTexts], None]  # fills the first folder
    filters: Sequence[Filter]  # from raw to tokenised text
    settings: Sequence[str] = ()  # lines before those of the options
    bound: Optional[Sequence[str]] = None  # the options that are settings, in their order; None: all of the recipe
    address: str = "the addresses in this script"  # where archives come from, in the settings
    vocabulary: int = 0  # the largest number of characters in the dictionary, if the tokens are characters
    # Takes a sample of the training text of each language that Moses cuts, if Moses may be wrong for it.
    sample: Optional[Callable[[Find], Mapping[str, Sequence[str]]]] = None

    def sides(self, options: Options) -> Sequence[str]:
        """Return what has its own merges and dictionary: each language, or "" for both together."""
        return self.languages if options["share"] == "separate" else ("",)


@dataclass(frozen=True)
class Recipe:
    """A corpus as a command. `corpus` checks its own options and sets their final values."""

    script: str  # its name in settings and in its help
    title: str
    corpus: Callable[[Options], Corpus]
    options: Mapping[str, str]  # the help of each by its name and value, as `limit N`, in the order of the settings
    defaults: Mapping[str, str]
    notes: str  # how the text is made
    results: Mapping[str, str]  # the help of what is made besides OUT/bin and the manifest
    sets: str = "train, valid, test"  # that are binarised

    def names(self, flags: bool = False) -> list[str]:
        """Return the names of the options with a value, or of those without one."""
        return [key.split()[0] for key in self.options if flags != (" " in key)]

    def final_options(self, choices: Options) -> Options:
        """Return all options; those that corpora share have their final values. The maximum length `none` is none."""
        options = {**choices, **DEFAULTS, **self.defaults, **{name: value for name, value in choices.items() if value}}
        if options["max-length"] == "none":
            options["max-length"] = ""
        for name in ("limit", "merges", "max-length"):
            if options[name]:
                options[name] = str(whole(f"--{name}", options[name]))
        if not re.fullmatch(r"([0-9]*\.)?[0-9]*", options["ratio"], re.ASCII) or options["ratio"] == ".":
            raise LabError(f"--ratio must be a number, not '{options['ratio']}'")
        if options["bpe"] not in ("subword-nmt", "sentencepiece", "sentencepiece-bpe"):
            raise LabError(f"--bpe takes subword-nmt, sentencepiece or sentencepiece-bpe, not '{options['bpe']}'")
        if options["share"] not in ("joint", "separate"):
            raise LabError(f"--share takes joint or separate, not '{options['share']}'")
        if options["from"]:
            options["from"] = folder_of("--from", options["from"])
        return options

    def settings(self, corpus: Corpus, options: Options) -> list[str]:
        """Return the lines `KEY VALUE` of a corpus and its options, after a check of --codes and --dict."""
        _require_earlier_files(options, corpus.sides(options))
        lines = list(corpus.settings)
        for name in self.names() if corpus.bound is None else corpus.bound:
            value = options[name]
            if name == "from":
                lines.append(f"from {value or mirror() or corpus.address}")
            elif name in ("codes", "dict"):
                sides = corpus.sides(options)
                hashes = (fingerprint(Path(of_side(value, side))) if value else "learnt" for side in sides)
                lines.append(f"{name} {' '.join(hashes)}")
            elif name != "bpe" or value != "subword-nmt":  # older folders have no line for it
                lines.append(f"{name} {value or 'none'}")
        return lines


def of_archives(
    script: str,
    title: str,
    corpus: Callable[[Options], Corpus],
    options: Mapping[str, str],
    defaults: Mapping[str, str],
    results: Mapping[str, str] = {},
    **attributes: str,
) -> Recipe:
    """Return the recipe of a corpus that is made from archives or files with known names.

    Args:
        options: those before --merges.
        results: what is made otherwise.
        attributes: further ones of the recipe.
    """
    separate = defaults.get("share") == "separate"
    merges = f"{int(defaults.get('merges', DEFAULTS['merges'])):,}"
    sides = (". With separate BPE: its codes.zh and codes.en", ". With separate BPE: its dict.zh.txt and dict.en.txt")
    codes, dictionaries = sides if separate else ("", "")
    shared = {
        "merges N": f"BPE merges ({merges})",
        "bpe HOW": BPE,
        "share HOW": SEPARATE if separate else JOINT,
        "max-length N": f"{LONGEST} ({defaults['max-length']})",
        "ratio X": f"{RATIO} ({defaults['ratio']})",
        "codes FILE": EARLIER_CODES + codes,
        "dict FILE": EARLIER_DICT + dictionaries,
    }
    directions = "" if separate else ", for both directions"
    made = {"OUT/raw": RAW, **(CODES_OF_SIDES if separate else CODES), **results}
    what = f"Prepare {title}, and binarise it for fairseq, in OUT/bin{directions}."
    return Recipe(script, what, corpus, {**options, **shared}, defaults, results=made, **attributes)


# --- values of options -----------------------------------------------------------------------------------------------


def one_of(options: Options, name: str, *values: str) -> None:
    """Raise a LabError if an option has none of these values."""
    if options[name] not in values:
        raise LabError(f"--{name} must be {' or '.join(values)}, not '{options[name]}'")


def folder_of(option: str, path: str) -> str:
    """Return the real path of an existing folder."""
    if not os.path.isdir(path):
        raise LabError(f"{option} {path}: no such folder")
    return os.path.realpath(path)


def require_library(module: str, extra: str) -> None:
    """Raise a LabError if a Python module of an extra is not installed."""
    if importlib.util.find_spec(module) is None:
        fix = f"pip install 'fairseq-capsule[{extra}]', or activate the environment that has it"
        raise LabError(f"{module} is not installed: {fix}")


def of_side(file: str, side: str) -> str:
    """Return the name of a side's file: codes → codes.LANG; dict.txt → dict.LANG.txt; the name itself for both."""
    ending = next((ending for ending in (".txt", ".model") if file.endswith(ending)), "")
    return f"{file.removesuffix(ending)}.{side}{ending}" if side else file


def _require_earlier_files(options: Options, sides: Sequence[str]) -> None:
    if options["bpe"] == "none" and options["codes"]:
        raise LabError("--codes: characters have no codes; give only --dict")
    if options["bpe"] != "none" and bool(options["codes"]) != bool(options["dict"]):
        raise LabError("--codes and --dict belong together: give both files of the earlier run, or neither")
    for side in sides if options["dict"] else ():
        if options["codes"]:
            codes = Path(of_side(options["codes"], side))
            (subwords.require_merges if options["bpe"] == "subword-nmt" else subwords.require_pieces)(codes)
        subwords.require_dictionary(Path(of_side(options["dict"], side)))
