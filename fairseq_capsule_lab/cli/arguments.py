"""Types of command-line arguments, groups of options that commands share, and the words of the commands of scripts.

argparse reports a wrong number or text, with the option's name. A wrong file or folder raises a `LabError` or an
`OSError` that names it, before the command does anything. What needs torch is imported where it is called.
"""

import math
import os
import re
import sys
import unicodedata
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from capsule_routing.errors import one_line
from capsule_routing.text.files import regular_file
from capsule_routing.text.folders import binarised_folder, prepared_folder
from capsule_routing.text.number_sets import number_ranges
from fairseq_capsule_lab.errors import DECIMAL, LabError

if TYPE_CHECKING:
    from fairseq_capsule.hub import CapsuleHub

DATA = "the data of its training: OUT of a prepare script, or the folder that fairseq-preprocess wrote"
MOST = 10**9  # for a number that has no smaller bound
MOST_SEED = 2**32 - 1  # the largest seed of numpy

# --- numbers ---------------------------------------------------------------------------------------------------------


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a whole number from `least` to `most`, in decimal digits."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} to {most}")
        return int(text)

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    """An argparse type: a number from `least` to `most`; not NaN."""

    def parse(text: str) -> float:
        value = float(text) if DECIMAL.fullmatch(text) else math.nan
        if not least <= value <= most:
            raise ArgumentTypeError(f"{text[:40]!r} is not a number from {least:g} to {most:g}")
        return value

    return parse


def whole_numbers(least: int, most: int, most_numbers: int = 10_000) -> Callable[[str], list[int]]:
    """An argparse type: a set of whole numbers from `least` to `most`, such as `1-5` or `1,3,5-7`, sorted."""

    def parse(text: str) -> list[int]:
        ranges = number_ranges(text, least, most)  # not expanded before their length is checked
        if ranges is None:
            kind = f"a set of whole numbers from {least} to {most}, such as 1-5 or 1,3"
            raise ArgumentTypeError(f"{text[:40]!r} is not {kind}")
        if sum(map(len, ranges)) > most_numbers:
            raise ArgumentTypeError(f"{text[:40]!r} has more than {most_numbers} numbers; give a smaller set")
        return sorted(set().union(*ranges))

    return parse


positive_int = whole_number(1, MOST)
beam_size = whole_number(1, 1000)
percentage = number(0, 100)

# --- texts -----------------------------------------------------------------------------------------------------------


def unicode_text(text: str) -> str:
    """An argparse type: text that can be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentTypeError(f"{text!r} is not UTF-8") from error
    return text


def label(text: str) -> str:
    """An argparse type: a name on one line, such as a split or a system."""
    if not _is_printable(text):
        raise ArgumentTypeError(f"{text[:40]!r} is not a name: it is empty, or has control characters")
    return text


def language_code(text: str) -> str:
    """An argparse type: `de`, `pt_BR`, `zh-Hans`. Moses applies general rules to a language that it does not know."""
    if not re.fullmatch("[A-Za-z]+([_-][A-Za-z0-9]+)*", text) or len(text) > 40:
        raise ArgumentTypeError(f"{text[:40]!r} is not a language code such as de or pt_BR")
    return text


def language_of(reference: Path) -> str:
    """The language in the suffix of a file name, as in `test.de`; raises a LabError if the name has no such suffix."""
    ending = reference.suffix[1:]
    if not re.fullmatch("[a-z]{2}([_-][A-Za-z0-9]+)*", ending):
        raise LabError(f"--lang is missing, and {reference} does not end with a language as test.de does; give --lang")
    return ending


def system_names(given: Optional[list[str]], paths: Sequence[Path], parts: int = 1) -> list[str]:
    """The names of --names for files or folders, or by default the last `parts` parts of their paths.

    A file's name is without its suffix if this leaves different names. If names are equal, they have more parts.

    Raises:
        LabError: the names are not different, or not one for each path.
    """
    names = given or []
    for length in range(parts, parts + max(len(path.parts) for path in paths)) if not given else ():
        ends = [Path(*path.parts[-length:]) for path in paths]
        stems = [end if path.is_dir() else end.with_suffix("") for end, path in zip(ends, paths)]
        names = [str(name) for name in (stems if len(set(stems)) == len(stems) else ends)]
        if len(set(names)) == len(names):
            break
    if len(names) != len(paths) or len(set(names)) < len(names):
        raise LabError(f"--names: give {len(paths)} different names, one for each system: not {' '.join(names)}")
    return names


def _is_printable(text: str) -> bool:
    """Whether a name can be printed on one line and encoded in UTF-8."""
    return bool(text) and not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


# --- files and folders -----------------------------------------------------------------------------------------------


def input_file(text: str) -> Path:
    """An argparse type: a readable file."""
    return _readable(regular_file(_existing(text)), os.R_OK)


def input_folder(text: str) -> Path:
    """An argparse type: a readable folder."""
    path = _existing(text)
    if not path.is_dir():
        raise LabError(f"{path}: not a folder; name a folder")
    return _readable(path, os.R_OK | os.X_OK)


def data_folder(text: str) -> Path:
    """An argparse type: a folder of binarised data, named by itself or by the OUT of a prepare script."""
    return binarised_folder(input_folder(text))


def prepared_data(text: str) -> Path:
    """An argparse type: the OUT of a prepare script, named by itself or by its `bin`. Other folders stay."""
    folder = input_folder(text)
    return prepared_folder(folder) or folder


def input_path(text: str) -> Path:
    """An argparse type: a readable file or folder."""
    return input_folder(text) if _existing(text).is_dir() else input_file(text)


def output_folder(text: str) -> Path:
    """An argparse type: a writable folder that exists or can be created."""
    path = _path(text)
    above = next(place for place in (path, *path.parents) if os.path.lexists(place) or place == Path())
    if not above.is_dir():
        raise LabError(f"{above}: not a folder; name a folder, or a new name")
    return _writable(path, above)


def output_file(text: str) -> Path:
    """An argparse type: a file in an existing writable folder, or a writable device.

    A file is written under a temporary name in its folder, also if it exists.
    """
    path = _path(text)
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise LabError(f"{path}: a folder; name a file")
    if not path.parent.is_dir():
        raise LabError(f"{path.parent}: no such folder to write {path.name} in; create it or choose another")
    if not folder.is_dir():
        raise LabError(f"{path}: a link to a folder that does not exist; create it or choose another")
    return _writable(path, path if path.exists() and not path.is_file() else folder)


def _path(text: str) -> Path:
    if not _is_printable(text):
        problem = "it is empty, not UTF-8, or has control characters"
        raise LabError(f"{text[:200]!r} is not a file name: {problem}; choose another")
    return Path(text)


def _existing(text: str) -> Path:
    path = _path(text)
    path.lstat()  # raises an OSError with the path and the reason
    if not path.exists():
        raise LabError(f"{path}: a broken link; name an existing file or folder")
    return path


def _readable(path: Path, access: int) -> Path:
    if not os.access(path, access):
        raise LabError(f"{path}: cannot be read; change its permissions, or name another")
    return path


def _writable(path: Path, place: Path) -> Path:
    if not os.access(place, os.W_OK | (os.X_OK if place.is_dir() else 0)):
        raise LabError(f"{place}: cannot be written; change its permissions, or name another")
    return path


# --- options of texts and scores -------------------------------------------------------------------------------------


def add_text(parser: ArgumentParser) -> None:
    """Add the options that state how the text of outputs is written."""
    from fairseq_capsule_lab.evaluation.translations import SUBWORDS, TOKENISED

    text = (
        "whether an output is tokenised; auto (the default): yes for an output of fairseq-generate, unless it was "
        "generated with --tokenizer or consists of SentencePiece pieces or of characters; no for plain text"
    )
    parser.add_argument("--tokenized", choices=TOKENISED, default="auto", help=text)
    text = (
        "how to join subwords (default: none for plain text; for an output of fairseq-generate sentencepiece if "
        "it has such pieces or characters, otherwise subword_nmt)"
    )
    parser.add_argument("--remove-bpe", choices=SUBWORDS, help=text)


def add_external(parser: ArgumentParser) -> None:
    text = (
        "also compare by another metric's scores of the sentences: JSON, as comet-score --to_json writes it, or "
        "TSV with a column for each output; may be repeated"
    )
    parser.add_argument("--external", type=label, action="append", default=[], metavar="NAME=FILE", help=text)


def add_bootstrap(parser: ArgumentParser) -> None:
    text = "samples of the paired bootstrap (default: %(default)s)"
    parser.add_argument("--samples", type=whole_number(1, 100_000), default=1000, help=text)
    text = "seed of the paired bootstrap (default: %(default)s, as in sacrebleu)"
    parser.add_argument("--seed", type=whole_number(1, MOST_SEED), default=12345, help=text)


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


# --- trained models --------------------------------------------------------------------------------------------------


def add_model_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that name a trained model and the preprocessing of raw text. `load_model` reads them."""
    parser.add_argument("checkpoint", type=input_file, help="a trained model")
    parser.add_argument("data", type=data_folder, help=DATA)
    text = "only for data that no prepare script made: subword-nmt codes, or a SentencePiece model, for raw text"
    parser.add_argument("--codes", type=input_file, help=text)
    text = "only for such data: fairseq's tokeniser of raw text"
    parser.add_argument("--tokenizer", choices=["moses", "space"], help=text)


def add_checkpoints(parser: ArgumentParser, split: str = "", trained: str = "trained models") -> None:
    """Add the arguments that name several models and their data, with a split if it has a default."""
    parser.add_argument("checkpoints", type=input_file, nargs="+", metavar="CHECKPOINT", help=trained)
    parser.add_argument("--data", type=data_folder, required=True, help=DATA)
    if split:
        parser.add_argument("--split", type=label, default=split, help="the split of the data (default: %(default)s)")


def load_model(args: Namespace, checkpoint: Path) -> "CapsuleHub":
    """Load a checkpoint with the dictionaries and preprocessing that the arguments name; raises a UserError."""
    from fairseq_capsule.data.merges import bpe_options
    from fairseq_capsule.hub import load

    options = bpe_options(args.codes) if args.codes else {}
    if args.tokenizer or args.codes or not prepared_folder(args.data):
        options["tokenizer"] = args.tokenizer or "space"
    return load(checkpoint, args.data, **options)


def note_unknown_words(args: Namespace, hub: "CapsuleHub", sources: Sequence[Any]) -> None:
    """Print a note if the text has words that are not in the dictionary, which the model reads as `<unk>`."""
    words = sum(len(source.tokens) - 1 for source in sources)  # without the end of the sentence
    unknown = sum(int(source.tokens.eq(hub.src_dict.unk()).sum()) for source in sources)
    advice = "" if prepared_folder(args.data) or args.codes else "; was the data prepared with --codes and --tokenizer?"
    if unknown:
        note(args, f"{unknown} of {words} words are unknown{advice}")


def note_missing_characters(args: Namespace, missing: Collection[str]) -> None:
    """Print a note if the pictures have characters that no font has."""
    if missing:
        more = ", ..." if len(missing) > 10 else ""
        listed = ", ".join(list(missing)[:10])
        note(args, f"no font for {listed}{more}: install one (for Chinese in Debian: apt install fonts-noto-cjk)")


def note(args: Namespace, text: str) -> None:
    print(f"fairseq-capsule {args.command}: note: {one_line(text)}", file=sys.stderr)


def read_words(
    words: Sequence[str], options: Sequence[str], flags: Sequence[str] = (), repeated: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Split the words of a command that a script calls (`scripts/train.sh` is `fairseq-capsule train`).

    Args:
        options, flags: names of options with a value, and of options without one, whose value is "yes".
        repeated: those of `options` whose values are joined by commas.

    Returns:
        The values by name, empty for what is not given; and the other words.

    Raises:
        LabError: an unknown option, or one without its value.
    """
    values, places = dict.fromkeys([*options, *flags], ""), []
    rest = iter(words)
    for word in rest:
        name = word.removeprefix("--")
        if not word.startswith("-"):
            places.append(word)
        elif name == word or name not in values:
            raise LabError(f"unknown option {word} (see --help)")
        elif name in flags:
            values[name] = "yes"
        else:
            value = next(rest, "")
            if not value:
                raise LabError(f"{word} requires a value (see --help)")
            values[name] = f"{values[name]},{value}" if name in repeated and values[name] else value
    return values, places
