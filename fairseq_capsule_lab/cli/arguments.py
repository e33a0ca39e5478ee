"""Types of arguments, and options that commands share.

A wrong number or choice is a `click.UsageError` (exit status 2). A wrong file or folder raises a `UserError` or an
`OSError` that names it (exit status 1), before the command does anything. What needs torch is imported where it is
called.
"""

import functools
import glob
import os
import re
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capsule_routing.errors import UserError
from capsule_routing.text.files import regular_file
from capsule_routing.text.folders import binarised_folder, prepared_folder
from capsule_routing.text.number_sets import number_set
from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.cli.commands import Decorator, argument, flag, note, option, together
from fairseq_capsule_lab.corpora.segments import is_markup

if TYPE_CHECKING:
    from fairseq_capsule.hub import CapsuleHub
    from fairseq_capsule_lab.pages.sentences import SourceSentence

DATA = "The data of its training: OUT of a prepare script, or the folder that fairseq-preprocess wrote."
MOST = 10**9  # for a number that has no smaller bound
MOST_SEED = 2**32 - 1  # the largest seed of numpy

# --- numbers ---------------------------------------------------------------------------------------------------------

positive_int = click.IntRange(1)


def number(least: float, most: float) -> Callable[[str], float]:
    """A type: a number from `least` to `most`. For click, nan is in every range."""

    def parse(text: str) -> float:
        value = float(text)  # click refuses what raises a ValueError
        if not least <= value <= most:
            raise click.BadParameter(f"{text} is not a number from {least:g} to {most:g}.")
        return value

    return parse


def whole_numbers(least: int, most: int) -> Callable[[str], list[int]]:
    """A type: a set of whole numbers from `least` to `most`, such as `1-5` or `1,3,5-7`, sorted."""

    def parse(text: str) -> list[int]:
        numbers = number_set(text, least, most)
        if numbers is None:
            kind = f"a set of whole numbers from {least} to {most}, such as 1-5 or 1,3"
            raise click.BadParameter(f"{text[:40]!r} is not {kind}.")
        return numbers

    return parse


# --- texts -----------------------------------------------------------------------------------------------------------


def given(text: str) -> str:
    """A type: any text that is not empty, so that a variable of a shell that is not set is no value."""
    if not text:
        raise click.BadParameter("it is empty.")
    return text


def language_code(text: str) -> str:
    """A type: `de`, `pt_BR`, `zh-Hans`. Moses applies general rules to a language that it does not know."""
    if not re.fullmatch("[A-Za-z]+([_-][A-Za-z0-9]+)*", text) or len(text) > 40:
        raise click.BadParameter(f"{text[:40]!r} is not a language code such as de or pt_BR.")
    return text


def language_of(reference: Path) -> str:
    """The language in the suffix of a file name, as in `test.de`; raises a UserError if the name has no such suffix."""
    ending = reference.suffix[1:]
    if not re.fullmatch("[a-z]{2}([_-][A-Za-z0-9]+)*", ending):
        raise UserError(f"--lang is missing, and {reference} does not end with a language as test.de does; give --lang")
    return ending


def system_names(given: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """The names of --names, by default the paths from their common folder on.

    Raises:
        UserError: the names are not different, or not one for each path.
    """
    folder = os.path.commonpath([path.absolute().parent for path in paths])
    names = given or [os.path.relpath(path, folder) for path in paths]
    if len(names) != len(paths) or len(set(names)) < len(names):
        raise UserError(f"--names: give {len(paths)} different names, one for each system: not {' '.join(names)}")
    return list(names)


# --- files and folders -----------------------------------------------------------------------------------------------


def existing(text: str) -> Path:
    """A type: a file or a folder. A missing one raises an OSError that names it."""
    path = Path(given(text))
    path.stat()
    return path


def input_file(text: str) -> Path:
    """A type: a readable file."""
    return regular_file(existing(text))


def model_file(text: str) -> Path:
    """A type: a checkpoint, or the folder of a model of transformers."""
    path = existing(text)
    return path if (path / "config.json").is_file() else regular_file(path)


def text_file(text: str) -> Path:
    """A type: a plain text of one sentence a line, or an output of fairseq.

    SGML or XML is refused: its documents may be in another order than those of the source.
    """
    path = input_file(text)
    with open(path, "rb") as stream:
        start = stream.read(1000).decode("utf-8-sig", "replace")
    if is_markup(path.name, start):
        raise UserError(f"{path}: SGML or XML; give plain text in the order of the source, such as raw/test.de of OUT")
    return path


def input_folder(text: str) -> Path:
    """A type: a readable folder."""
    path = existing(text)
    if not path.is_dir():
        raise UserError(f"{path}: not a folder; name a folder")
    return path


def data_folder(text: str) -> Path:
    """A type: a folder of binarised data, named by itself or by the OUT of a prepare script."""
    return binarised_folder(input_folder(text))


def prepared_data(text: str) -> Path:
    """A type: the OUT of a prepare script, named by itself or by its `bin`. Other folders stay."""
    folder = input_folder(text)
    return prepared_folder(folder) or folder


def text_files(text: str) -> list[Path]:
    """A type: texts separated by colons, or patterns of files such as `capsule-*/generate.out`.

    An existing file is no pattern: the folder of a run may have brackets in its name. The files of a pattern are sorted
    by the numbers in their names: `seed2` stands before `seed10`, whatever follows the number.
    """
    paths = []
    for name in text.split(":"):
        paths += [name] if os.path.exists(name) else sorted(glob.glob(name), key=_by_numbers) or [name]
    return [text_file(path) for path in paths]


def _by_numbers(path: str) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split("([0-9]+)", path)]


def output_path(text: str) -> Path:
    """A type: a file or a folder to write."""
    return Path(given(text))


def absent_folder(text: str) -> Path:
    """A type: a folder that does not exist."""
    path = output_path(text)
    if os.path.lexists(path):
        raise UserError(f"{path}: exists already; name a new folder")
    return path


# --- options that commands share -------------------------------------------------------------------------------------


def _import_plugin(ctx: click.Context, param: click.Parameter, folder: str | None) -> None:
    if folder is None:
        return
    if not (input_folder(folder) / "__init__.py").is_file():
        raise UserError(f"--user-dir {folder}: no package there; name the folder that contains __init__.py")
    from fairseq import utils

    utils.import_user_module(Namespace(user_dir=folder))
    ctx.meta["user_dir"] = folder


USER_DIR = click.option(
    "--user-dir",
    metavar="DIR",
    callback=_import_plugin,
    expose_value=False,
    is_eager=True,  # what it registers may be named by the other arguments
    help="A plugin with your own mechanisms (docs/extending.md), as for fairseq-train.",
)
NOT_RUN = "Print the commands of other programs, and run nothing."
DRY_RUN = flag("--dry-run", NOT_RUN)
# `main` prints what the command returns.
JSON = click.option(
    "--json", is_flag=True, expose_value=False, help="Print one JSON object to stdout, and all else to stderr."
)
LOWERCASE = flag("--lowercase", "Ignore case.")
BY_LANGUAGE = (
    "Tokeniser of BLEU, a name of sacreBLEU.  [default: by the language zh, ja-mecab (extra japanese), ko-mecab (extra "
    "korean), for other scripts without spaces char, otherwise 13a]"
)
BLEU_TOKENIZER = option("--bleu-tokenizer", given, "NAME", BY_LANGUAGE)
NAME = "The name of a system; once for each, in their order.  [default: their paths]"
NAMES = option("--names", given, "NAME", NAME, multiple=True)
LENGTH_PENALTY = number(-MOST, MOST)
BEAM = option("--beam", positive_int, "N", "Beam size.", default=defaults.BEAM)
BOUNDS = (
    "Upper bounds of the length groups, in words of the source, or in characters if no spaces separate its words.  "
    "[default: 10,20,30,40,50 words; five groups of about equal size of characters]"
)
INTERVALS = option("--intervals", whole_numbers(0, MOST), "N,N,…", BOUNDS)
EXTERNAL = option(
    "--external",
    given,
    "NAME=FILE",
    "Also compare by another metric's scores of the sentences: JSON of comet-score --to_json, or TSV with a column for "
    "each output. May be repeated.",
    multiple=True,
)
TOKENISED = (
    "Whether an output is tokenised. auto: no for plain text; yes for an output of fairseq-generate, unless it was "
    "generated with --tokenizer or consists of SentencePiece pieces or of characters."
)
JOINED = (
    "How to join subwords.  [default: none for plain text; for an output of fairseq-generate sentencepiece if it has "
    "such pieces or characters, otherwise subword_nmt]"
)
# How the text of outputs is written.
TEXT = together(
    option("--tokenized", click.Choice(["auto", "yes", "no"]), "", TOKENISED, default="auto"),
    option("--remove-bpe", click.Choice(["subword_nmt", "sentencepiece", "none"]), "", JOINED),
)
BOOTSTRAP = together(
    option("--samples", click.IntRange(1, 100_000), "N", "Samples of the paired bootstrap.", default=1000),
    option("--seed", click.IntRange(1, MOST_SEED), "N", "Its seed, by default that of sacrebleu.", default=12345),
)
CODES = "Only for data that no prepare script made: subword-nmt codes or a SentencePiece model, for raw text."


def _imported(function: Any) -> Any:
    """Let a command read the folder of a model of transformers, which is imported for as long as the command runs."""

    @functools.wraps(function)
    def called(checkpoint: Path, data: Path | None, **options: Any) -> Any:
        if not checkpoint.is_dir():
            if data is None:
                raise click.UsageError("Missing argument 'DATA'.")
            return function(checkpoint=checkpoint, data=data, **options)
        if data is not None:
            raise UserError(f"{checkpoint} has its own dictionaries; leave out {data}")
        from fairseq_capsule_lab.export import from_transformers

        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, checkpoint.resolve().name)
            folder.mkdir()
            from_transformers.write(checkpoint, folder)
            note(f"{checkpoint}: imported as by import-model")
            return function(checkpoint=folder / from_transformers.CHECKPOINT, data=binarised_folder(folder), **options)

    return called


# A trained model, and the preprocessing of raw text, which `load_model` reads.
MODEL = together(
    argument("checkpoint", model_file, "A trained model, or a folder of transformers, which needs no DATA."),
    argument("data", data_folder, DATA, required=False),
    option("--codes", input_file, "FILE", CODES),
    option("--tokenizer", click.Choice(["moses", "space"]), "", "Only for such data: fairseq's tokeniser of raw text."),
    USER_DIR,
    _imported,
)


def _of_one_direction(function: Any) -> Any:
    """Let a command refuse models of different directions before it loads one."""

    @functools.wraps(function)
    def checked(checkpoints: Sequence[Path], *arguments: Any, **options: Any) -> Any:
        from fairseq_capsule.checkpoints.models import require_one_direction

        require_one_direction(checkpoints)
        return function(checkpoints, *arguments, **options)

    return checked


# Several trained models, and their data.
CHECKPOINTS = together(
    argument("checkpoints", input_file, "The trained models.", "CHECKPOINT", many=True),
    option("--data", data_folder, "DATA", DATA, required=True),
    USER_DIR,
    _of_one_direction,
)


def split_option(default: str) -> Decorator:
    return option("--split", given, "NAME", "The split of the data.", default=default)


# --- trained models --------------------------------------------------------------------------------------------------


def load_model(checkpoint: Path, data: Path, codes: Path | None, tokenizer: str | None) -> "CapsuleHub":
    """Load a checkpoint with the dictionaries and preprocessing that MODEL names; raises a UserError."""
    from fairseq_capsule.data.merges import bpe_options
    from fairseq_capsule.hub import load

    options = bpe_options(codes) if codes else {}
    if tokenizer or codes or not prepared_folder(data):
        options["tokenizer"] = tokenizer or "space"
    return load(checkpoint, data, **options)


def note_unknown_words(hub: "CapsuleHub", sources: Sequence["SourceSentence"], data: Path, codes: Path | None) -> None:
    """Print a note if the text has words that are not in the dictionary, which the model reads as `<unk>`."""
    words = sum(len(source.tokens) - 1 for source in sources)  # without the end of the sentence
    unknown = sum(int(source.tokens.eq(hub.src_dict.unk()).sum()) for source in sources)
    advice = "" if prepared_folder(data) or codes else "; was the data prepared with --codes and --tokenizer?"
    if unknown:
        note(f"{unknown} of {words} words are unknown{advice}")
