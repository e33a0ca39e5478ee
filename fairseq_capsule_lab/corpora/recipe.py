"""A recipe: a corpus as a page beside the paper, with its sources, filters, options, defaults and help."""

import dataclasses
import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairseq_capsule_lab.corpora import subwords
from fairseq_capsule_lab.corpora.parallel import Filter
from fairseq_capsule_lab.corpora.preparation import Corpus, Options, of_side, sides_of
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.errors import MOST, LabError
from fairseq_capsule_lab.processes import require_tools
from fairseq_capsule_lab.stages import fingerprint

# Of every corpus, whether or not it has an option for it.
DEFAULTS = {
    **dict.fromkeys(("from", "limit", "max-length", "ratio", "codes", "dict"), ""),
    **{"bpe": "subword-nmt", "merges": "32000", "share": "joint"},
}
_ADDRESSES = "the addresses in this script"  # in the settings


class Page(NamedTuple):
    """A corpus as a command: what `fairseq-capsule prepare` needs of it. A `Recipe` has the same attributes.

    Attributes:
        script: its name in settings and in its help.
        help: its help.
        options, flags: names of options with and without a value.
        corpus: see `Recipe.corpus`.
    """

    script: str
    help: str
    options: Sequence[str]
    corpus: Callable[[Options, Sequence[str]], Corpus]
    flags: Sequence[str] = ()


@dataclass(frozen=True)
class Recipe:
    """A corpus of two languages.

    Attributes:
        script: its name in settings and in its help.
        help: the help, as of a command.
        options: names of its options, in the order of the settings.
        raw: fills the first folder.
        filters: from raw to tokenised text; of the options.
        defaults: of its options. With a `vocabulary` the tokens are characters.
        check: refuses wrong values of its own options, and returns all options with their final values.
        version: settings before those of the options, which say how the text is made.
    """

    script: str
    help: str
    languages: tuple[str, str]
    options: Sequence[str]
    raw: Callable[[RawTexts, Options], None]
    filters: Callable[[Options], Sequence[Filter]]
    defaults: Options = dataclasses.field(default_factory=dict)
    check: Callable[[Options], Options] = lambda options: options
    flags: Sequence[str] = ()
    version: Sequence[str] = ()

    def corpus(self, choices: Options, words: Sequence[str]) -> Corpus:
        """Return the corpus with the choices of a user.

        Args:
            choices: the options that the user gave; others are empty.
            words: what the user gave.

        Raises:
            LabError: an option is wrong, or a library is missing.
        """
        options = shared_options(choices, self.defaults)
        require_libraries(options["bpe"], self.languages)
        options = dict(self.check(options))
        if "vocabulary" in options:
            options["bpe"] = "none"
        lines = [*self.version, *settings(options, self.options, self.languages, mirror())]
        vocabulary = int(options.get("vocabulary", 0))
        changes = self.filters(options)
        return Corpus(self.script, self.languages, options, lines, self.raw, changes, mirror(), vocabulary)


def mirror() -> str:
    """Return the address to download from instead of the archives' own."""
    return os.environ.get("MIRROR", "")


def shared_options(choices: Options, defaults: Options) -> dict[str, str]:
    """Return all options; those that corpora share have their final values. `none` as the maximum length is none.

    Raises:
        LabError: a value is wrong.
    """
    options = {**choices, **DEFAULTS, **defaults, **{name: value for name, value in choices.items() if value}}
    if options["max-length"] == "none":
        options["max-length"] = ""
    for name in ("limit", "merges", "max-length"):
        if options[name]:
            positive(f"--{name}", options[name])
    if not re.fullmatch(r"([0-9]*\.)?[0-9]*", options["ratio"], re.ASCII) or options["ratio"] == ".":
        raise LabError(f"--ratio must be a number, not '{options['ratio']}'")
    if options["bpe"] not in ("subword-nmt", "sentencepiece", "sentencepiece-bpe"):
        raise LabError(f"--bpe takes subword-nmt, sentencepiece or sentencepiece-bpe, not '{options['bpe']}'")
    if options["share"] not in ("joint", "separate"):
        raise LabError(f"--share takes joint or separate, not '{options['share']}'")
    if options["from"]:
        options["from"] = folder_of("--from", options["from"])
    return options


def one_of(options: Options, name: str, *values: str) -> Options:
    """Return the options, if one of them has one of these values.

    Raises:
        LabError: it has another one.
    """
    if options[name] not in values:
        raise LabError(f"--{name} must be {' or '.join(values)}, not '{options[name]}'")
    return options


def positive(option: str, value: str, most: int = MOST) -> int:
    """Return a positive whole number.

    Raises:
        LabError: the value is none, or larger than `most`.
    """
    if not re.fullmatch(r"[1-9][0-9]*", value, re.ASCII):
        raise LabError(f"{option} must be a positive whole number, not '{value}'")
    if len(value) > 12 or int(value) > most:
        raise LabError(f"{option} must be a positive whole number up to {most}, not {value}")
    return int(value)


def folder_of(option: str, path: str) -> str:
    """Return the real path of an existing folder."""
    if not os.path.isdir(path):
        raise LabError(f"{option} {path}: no such folder")
    return os.path.realpath(path)


def require_libraries(bpe: str, languages: Sequence[str]) -> None:
    """Raise a LabError if a tool is not installed."""
    require_tools("fairseq-preprocess")
    if "zh" in languages:
        require_library("jieba", "chinese")
    if bpe != "subword-nmt":
        require_library("sentencepiece", "sentencepiece")


def require_library(module: str, extra: str) -> None:
    """Raise a LabError if a Python module of an extra is not installed."""
    if importlib.util.find_spec(module) is None:
        raise LabError(
            f"{module} is not installed: pip install 'fairseq-capsule[{extra}]', or activate the environment that has "
            "it"
        )


def settings(options: Options, names: Sequence[str], languages: tuple[str, str], source: str) -> list[str]:
    """Return the lines `KEY VALUE` of options, in the order of `names`.

    Args:
        source: the address from which archives are downloaded, or "".

    Raises:
        LabError: a file of --codes or --dict is wrong.
    """
    sides, lines = sides_of(languages, options), []
    _require_earlier_files(options, sides)
    for name in names:
        value = options[name]
        if name == "from":
            lines.append(f"from {value or source or _ADDRESSES}")
        elif name in ("codes", "dict"):
            hashes = (fingerprint(Path(of_side(value, side))) if value else "learnt" for side in sides)
            lines.append(f"{name} {' '.join(hashes)}")
        elif name != "bpe" or value != "subword-nmt":  # older folders have no line for it
            lines.append(f"{name} {value or 'none'}")
    return lines


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
