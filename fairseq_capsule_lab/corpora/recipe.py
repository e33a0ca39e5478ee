"""A recipe: a corpus as a page beside the paper, with its sources, filters, options, defaults and help."""

import dataclasses
import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Optional

from fairseq_capsule_lab.corpora import subwords
from fairseq_capsule_lab.corpora.parallel import Filter
from fairseq_capsule_lab.corpora.preparation import Corpus, of_side, prepare
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.errors import MOST, LabError
from fairseq_capsule_lab.processes import require_tools
from fairseq_capsule_lab.stages import fingerprint

Options = Mapping[str, str]  # by name; "" for what is neither given nor has a default
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
        prepare: see `Recipe.prepare`.
    """

    script: str
    help: str
    options: Sequence[str]
    prepare: Callable[[str, Sequence[str], Options, str], None]
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
        defaults: of its options.
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

    def prepare(self, program: str, words: Sequence[str], given: Options, out: str) -> None:
        """Prepare the corpus in the folder `out`.

        Args:
            program, words: what the user called.
            given: the options that the user gave; others are empty.

        Raises:
            LabError: an option is wrong, or a stage failed.
        """
        shared = checked(with_defaults(given, self.defaults))
        require_libraries(shared["bpe"], self.languages)
        options = self.check(shared)
        corpus = chosen(
            self.script,
            self.languages,
            options,
            lambda raw: self.raw(raw, options),
            self.filters(options),
            lambda sides: [*self.version, *settings(options, self.options, sides, mirror())],
        )
        prepare(corpus, program, words, out)


def mirror() -> str:
    """Return the address to download from instead of the archives' own."""
    return os.environ.get("MIRROR", "")


def with_defaults(given: Options, defaults: Options) -> Options:
    return {**given, **DEFAULTS, **defaults, **{name: value for name, value in given.items() if value}}


def checked(options: Options) -> dict[str, str]:
    """Return the options that all corpora share with their final values. `none` as the maximum length is none.

    Raises:
        LabError: a value is wrong.
    """
    final = {**options, "max-length": "" if options["max-length"] == "none" else options["max-length"]}
    for name in ("limit", "merges", "max-length"):
        if final[name]:
            positive(f"--{name}", final[name])
    if not re.fullmatch(r"([0-9]*\.)?[0-9]*", options["ratio"], re.ASCII) or options["ratio"] == ".":
        raise LabError(f"--ratio must be a number, not '{options['ratio']}'")
    if options["bpe"] not in ("subword-nmt", "sentencepiece", "sentencepiece-bpe"):
        raise LabError(f"--bpe takes subword-nmt, sentencepiece or sentencepiece-bpe, not '{options['bpe']}'")
    if options["share"] not in ("joint", "separate"):
        raise LabError(f"--share takes joint or separate, not '{options['share']}'")
    if options["from"]:
        final["from"] = folder_of("--from", options["from"])
    return final


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


def chosen(
    script: str,
    languages: tuple[str, str],
    options: Options,
    raw: Callable[[RawTexts], None],
    filters: Sequence[Filter],
    lines: Callable[[Sequence[str]], Sequence[str]],
    base: str = "",
) -> Corpus:
    """Return the corpus of checked options. The files of --codes and --dict are checked here.

    Args:
        lines: the settings, of the sides that have their own merges.
        base: where archives are downloaded from, if not from their addresses.
    """
    corpus = Corpus(
        script=script,
        settings=(),
        languages=languages,
        raw=raw,
        filters=filters,
        given=Path(options["from"]) if options["from"] else None,
        mirror=base or mirror(),
        limit=int(options["limit"] or 0),
        bpe=options["bpe"],
        merges=int(options["merges"]),
        separate=options["share"] == "separate",
        longest=int(options["max-length"]) if options["max-length"] else None,
        ratio=options["ratio"],
        codes=_absolute(options["codes"]),
        dictionary=_absolute(options["dict"]),
    )
    _require_earlier_files(options, corpus.sides)
    return dataclasses.replace(corpus, settings=lines(corpus.sides))


def _absolute(path: str) -> Optional[Path]:
    return Path(os.path.realpath(path)) if path else None


def _require_earlier_files(options: Options, sides: Sequence[str]) -> None:
    """Refuse wrong --codes and --dict."""
    if options["bpe"] == "none" and options["codes"]:
        raise LabError("--codes: characters have no codes; give only --dict")
    if options["bpe"] != "none" and bool(options["codes"]) != bool(options["dict"]):
        raise LabError("--codes and --dict belong together: give both files of the earlier run, or neither")
    for side in sides if options["dict"] else ():
        if options["codes"]:
            codes = Path(of_side(options["codes"], side))
            (subwords.require_merges if options["bpe"] == "subword-nmt" else subwords.require_pieces)(codes)
        subwords.require_dictionary(Path(of_side(options["dict"], side)))


def settings(options: Options, names: Sequence[str], sides: Sequence[str], source: str) -> list[str]:
    """Return the lines `KEY VALUE` of options, in the order of `names`.

    Args:
        source: the address from which archives are downloaded, or "".
    """
    lines = []
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
