"""Types of arguments, options that commands share, and the class of their commands.

A wrong number or choice is a `click.UsageError` (exit status 2). A wrong file or folder raises a `LabError` or an
`OSError` that names it (exit status 1), before the command does anything. What needs torch is imported where it is
called.
"""

import functools
import os
import re
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capsule_routing.errors import one_line
from capsule_routing.text.files import regular_file
from capsule_routing.text.folders import binarised_folder, prepared_folder
from capsule_routing.text.number_sets import number_ranges
from fairseq_capsule_lab.errors import LabError

if TYPE_CHECKING:
    from fairseq_capsule.hub import CapsuleHub

DATA = "The data of its training: OUT of a prepare script, or the folder that fairseq-preprocess wrote."
MOST = 10**9  # for a number that has no smaller bound
MOST_SEED = 2**32 - 1  # the largest seed of numpy

Decorator = Callable[[Any], Any]

# --- commands --------------------------------------------------------------------------------------------------------


class Several(click.ParamType):
    """The type of an option with one or more values, as `--names A B`; `kind` converts each."""

    name = "several"

    def __init__(self, kind: Callable[[str], Any]):
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        return [self.kind(one) for one in value.split("\0")]


class Command(click.Command):
    """A command of this package.

    Its context keeps the words of the command line, for manifests. Its options may have several values. Its help ends
    with the files that it makes, if `results` describes them, and with an example.
    """

    def __init__(self, *args: Any, example: str = "", results: Mapping[str, str] = {}, **attributes: Any):
        super().__init__(*args, **attributes)
        self.example, self.results = example, results

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["words"] = list(args)
        several = [name for param in self.params if isinstance(param.type, Several) for name in param.opts]
        return super().parse_args(ctx, _join_values(args, several, ctx))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.results:
            with formatter.section("Results"):
                formatter.write_dl(list(self.results.items()))
        super().format_epilog(ctx, formatter)
        with formatter.section("Example"):
            formatter.write(f"  {ctx.command_path} {self.example}".rstrip() + "\n")


def _join_values(words: Sequence[str], several: Collection[str], ctx: click.Context) -> list[str]:
    """Join the values of each option in `several` to one word: an option of click has a fixed number of words."""
    rest, joined = list(words), []
    while rest and rest[0] != "--":
        word = rest.pop(0)
        joined.append(word)
        values = []
        while word in several and rest and not rest[0].startswith("-"):
            values.append(rest.pop(0))
        if values:
            joined.append("\0".join(values))  # no word has this character
        elif word in several:
            raise click.BadOptionUsage(word, f"Option {word!r} requires an argument.", ctx)
    return joined + rest


def command(
    name: str, example: str, results: Mapping[str, str] = {}, group: click.Group | None = None
) -> Callable[[Callable[[Namespace], Any]], Command]:
    """Make a function of the values of the arguments a command.

    Args:
        example: the words of a command line after the name of the command.
        results: the files that the command makes, and what they are.
        group: the command of which this is a part.
    """

    def decorate(function: Callable[[Namespace], Any]) -> Command:
        @functools.wraps(function)
        def call(**values: Any) -> Any:
            return function(Namespace(**values))

        made = click.command(name, cls=Command, example=example, results=results)(call)
        if group:
            group.add_command(made)
        return made

    return decorate


def together(*decorators: Decorator) -> Decorator:
    """Add several arguments or options by one decorator, in their order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def texts(args: Namespace) -> dict[str, str]:
    """The arguments by their names on the command line: "yes" for a flag, empty if not given."""
    return {name.replace("_", "-"): "yes" if value is True else value or "" for name, value in vars(args).items()}


def one_of(args: Namespace, *names: str, required: bool = False) -> None:
    """Refuse options that exclude each other, and if one is `required` also none. Their defaults are None."""
    options = [f"--{name.replace('_', '-')}" for name in names]
    given_options = [option for option, name in zip(options, names) if getattr(args, name) is not None]
    if len(given_options) > 1:
        raise click.UsageError(f"{given_options[0]} and {given_options[1]} exclude each other.")
    if required and not given_options:
        raise click.UsageError(f"Missing option {' or '.join(options)}.")


def note(text: str) -> None:
    print(f"{click.get_current_context().command_path}: note: {one_line(text)}", file=sys.stderr)


def argument(name: str, kind: Any, text: str, value: str = "", many: bool = False) -> Decorator:
    """An argument without a name on the command line, or one or more of them. The help calls it `value`."""
    value = (value or name.upper()) + ("..." if many else "")
    return click.argument(name, type=kind, nargs=-1 if many else 1, required=True, metavar=value, help=text)


def option(name: str, kind: Any, value: str, text: str, **attributes: Any) -> Decorator:
    """An option that takes a `value` of some kind; without a name of the value, the help shows its choices."""
    return click.option(name, type=kind, metavar=value or None, help=text, **attributes)


def flag(name: str, text: str) -> Decorator:
    return click.option(name, is_flag=True, help=text)


# --- numbers ---------------------------------------------------------------------------------------------------------


class Number(click.FloatRange):
    """A number in a range. NaN, which is in every range of click, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def whole_numbers(least: int, most: int, most_numbers: int = 10_000) -> Callable[[str], list[int]]:
    """A type: a set of whole numbers from `least` to `most`, such as `1-5` or `1,3,5-7`, sorted."""

    def parse(text: str) -> list[int]:
        ranges = number_ranges(text, least, most)  # not expanded before their length is checked
        if ranges is None:
            kind = f"a set of whole numbers from {least} to {most}, such as 1-5 or 1,3"
            raise click.BadParameter(f"{text[:40]!r} is not {kind}.")
        if sum(map(len, ranges)) > most_numbers:
            raise click.BadParameter(f"{text[:40]!r} has more than {most_numbers} numbers; give a smaller set.")
        return sorted(set().union(*ranges))

    return parse


positive_int = click.IntRange(1, MOST)
beam_size = click.IntRange(1, 1000)
percentage = Number(0, 100)

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
    """The language in the suffix of a file name, as in `test.de`; raises a LabError if the name has no such suffix."""
    ending = reference.suffix[1:]
    if not re.fullmatch("[a-z]{2}([_-][A-Za-z0-9]+)*", ending):
        raise LabError(f"--lang is missing, and {reference} does not end with a language as test.de does; give --lang")
    return ending


def system_names(given: Sequence[str] | None, paths: Sequence[Path], parts: int = 1) -> list[str]:
    """The names of --names for files or folders, or by default the last `parts` parts of their paths.

    A file's name is without its suffix if this leaves different names. If names are equal, they have more parts.

    Raises:
        LabError: the names are not different, or not one for each path.
    """
    names = list(given or ())
    for length in range(parts, parts + max(len(path.parts) for path in paths)) if not given else ():
        ends = [Path(*path.parts[-length:]) for path in paths]
        stems = [end if path.is_dir() else end.with_suffix("") for end, path in zip(ends, paths)]
        names = [str(name) for name in (stems if len(set(stems)) == len(stems) else ends)]
        if len(set(names)) == len(names):
            break
    if len(names) != len(paths) or len(set(names)) < len(names):
        raise LabError(f"--names: give {len(paths)} different names, one for each system: not {' '.join(names)}")
    return names


# --- files and folders -----------------------------------------------------------------------------------------------


def input_file(text: str) -> Path:
    """A type: a readable file."""
    return _readable(regular_file(_existing(text)), os.R_OK)


def input_folder(text: str) -> Path:
    """A type: a readable folder."""
    path = _existing(text)
    if not path.is_dir():
        raise LabError(f"{path}: not a folder; name a folder")
    return _readable(path, os.R_OK | os.X_OK)


def data_folder(text: str) -> Path:
    """A type: a folder of binarised data, named by itself or by the OUT of a prepare script."""
    return binarised_folder(input_folder(text))


def prepared_data(text: str) -> Path:
    """A type: the OUT of a prepare script, named by itself or by its `bin`. Other folders stay."""
    folder = input_folder(text)
    return prepared_folder(folder) or folder


def input_path(text: str) -> Path:
    """A type: a readable file or folder."""
    return input_folder(text) if _existing(text).is_dir() else input_file(text)


def output_folder(text: str) -> Path:
    """A type: a writable folder that exists or can be created."""
    path = _path(text)
    above = next(place for place in (path, *path.parents) if os.path.lexists(place) or place == Path())
    if not above.is_dir():
        raise LabError(f"{above}: not a folder; name a folder, or a new name")
    return _writable(path, above)


def output_file(text: str) -> Path:
    """A type: a file in an existing writable folder, or a writable device.

    A file is written under a temporary name in its folder, also if it exists.
    """
    path = _path(text)
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise LabError(f"{path}: a folder; name a file")
    if not folder.is_dir():
        raise LabError(f"{path}: no such folder to write it in; create it or choose another")
    return _writable(path, path if path.exists() and not path.is_file() else folder)


def _path(text: str) -> Path:
    if not text:
        raise LabError("an empty file name: name a file or a folder")
    return Path(text)


def _existing(text: str) -> Path:
    path = _path(text)
    path.stat()  # raises an OSError with the path and the reason
    return path


def _readable(path: Path, access: int) -> Path:
    if not os.access(path, access):
        raise LabError(f"{path}: cannot be read; change its permissions, or name another")
    return path


def _writable(path: Path, place: Path) -> Path:
    if not os.access(place, os.W_OK | (os.X_OK if place.is_dir() else 0)):
        raise LabError(f"{place}: cannot be written; change its permissions, or name another")
    return path


# --- options that commands share -------------------------------------------------------------------------------------


def _import_plugin(ctx: click.Context, param: click.Parameter, folder: str | None) -> None:
    if folder is None:
        return
    from fairseq import utils

    if not (input_folder(folder) / "__init__.py").is_file():
        raise LabError(f"--user-dir {folder}: no package there; name the folder that contains __init__.py")
    try:
        utils.import_user_module(Namespace(user_dir=folder))
    except (Exception, SystemExit) as error:  # a plugin may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        problem = f"it cannot be imported ({reason}, in {place.filename}, line {place.lineno})"
        raise LabError(f"--user-dir {folder}: {problem}; correct the plugin") from error
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
JSON = flag("--json", "Print a JSON object as the last line.")
LOWERCASE = flag("--lowercase", "Ignore case.")
NAMES = option("--names", Several(given), "NAME...", "Names of the systems.  [default: their paths]")
BEAM = option("--beam", beam_size, "N", "Beam size.", default=5)
LANGUAGE = option("--lang", language_code, "LANG", "Language of the translations.  [default: the suffix of REF]")
BOUNDS = "Upper bounds of the length groups, in words of the source.  [default: 10,20,30,40,50]"
INTERVALS = option("--intervals", whole_numbers(0, MOST), "N,N,…", BOUNDS)
OTHER_REFERENCE = flag("--other-reference", "Accept a REF that is another text than the T- lines of an output.")
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
# A trained model, and the preprocessing of raw text, which `load_model` reads.
MODEL = together(
    argument("checkpoint", input_file, "A trained model."),
    argument("data", data_folder, DATA),
    option("--codes", input_file, "FILE", CODES),
    option("--tokenizer", click.Choice(["moses", "space"]), "", "Only for such data: fairseq's tokeniser of raw text."),
    USER_DIR,
)
# Several trained models, and their data.
CHECKPOINTS = together(
    argument("checkpoints", input_file, "The trained models.", "CHECKPOINT", many=True),
    option("--data", data_folder, "DATA", DATA, required=True),
    USER_DIR,
)


def split_option(default: str) -> Decorator:
    return option("--split", given, "NAME", "The split of the data.", default=default)


# --- trained models --------------------------------------------------------------------------------------------------


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
        note(f"{unknown} of {words} words are unknown{advice}")


def note_missing_characters(missing: Collection[str]) -> None:
    """Print a note if the pictures have characters that no font has."""
    if missing:
        more = ", ..." if len(missing) > 10 else ""
        listed = ", ".join(list(missing)[:10])
        note(f"no font for {listed}{more}: install one (for Chinese in Debian: apt install fonts-noto-cjk)")
