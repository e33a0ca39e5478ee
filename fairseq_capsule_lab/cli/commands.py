"""A command of this package, and short forms of its arguments and options on click."""

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from capsule_routing.errors import UserError, missing_library, one_line

Decorator = Callable[[Any], Any]
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


class _WithExample(click.Command):
    """A command whose help ends with the files that it makes, if `results` describes them, and with an example."""

    def __init__(self, *args: Any, example: str = "", results: Mapping[str, str] = {}, **attributes: Any):
        super().__init__(*args, **{"context_settings": SETTINGS, **attributes})
        self.example, self.results = example, results

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.results:
            with formatter.section("Results"):
                formatter.write_dl(list(self.results.items()))
        with formatter.section("Example"):
            formatter.write(f"  {ctx.command_path} {self.example}".rstrip() + "\n")


class Group(_WithExample, click.Group):
    """A command that has commands of its own."""

    def __init__(self, *args: Any, **attributes: Any):
        super().__init__(*args, no_args_is_help=False, **attributes)  # no name is a mistake: a line, and status 2


class Command(_WithExample):
    """A command of this package. Its context keeps the words of the command line, for manifests."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["words"] = list(args)
        return super().parse_args(ctx, args)


def command(name: str, example: str, group: click.Group | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command, whose parameters have the names of its arguments and options.

    Args:
        example: the words of a command line after the name of the command.
        group: the command of which this is a part.
    """
    if group is None:
        return click.command(name, cls=Command, example=example)
    return group.command(name, cls=Command, example=example)


def together(*decorators: Decorator) -> Decorator:
    """Add several arguments or options by one decorator, in their order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def one_of(given: Mapping[str, Any], required: bool = False) -> None:
    """Refuse options that exclude each other, and if one is `required` also none. An option without a value is None."""
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other.")
    if required and not chosen:
        raise click.UsageError(f"Missing option {' or '.join(given)}.")


def note(text: str) -> None:
    print(f"{click.get_current_context().command_path}: note: {one_line(text)}", file=sys.stderr)


def argument(name: str, kind: Any, text: str, value: str = "", many: bool = False, required: bool = True) -> Decorator:
    """An argument without a name on the command line, or one or more of them. The help calls it `value`."""
    value = (value or name.upper()) + ("..." if many else "")
    return click.argument(name, type=kind, nargs=-1 if many else 1, required=required, metavar=value, help=text)


def option(name: str, kind: Any, value: str, text: str, **attributes: Any) -> Decorator:
    """An option that takes a `value` of some kind; without a name of the value, the help shows its choices."""
    return click.option(name, type=kind, metavar=value or None, help=text, **attributes)


def flag(name: str, text: str) -> Decorator:
    return click.option(name, is_flag=True, help=text)


def run_command(
    prefix: str, make_context: Callable[[], click.Context], wrong_usage: int = 2, as_json: bool = False
) -> int:
    """Run the command of a context and return the exit status. A message begins with the `prefix`.

    With `as_json`, what the command returns is alone on stdout, as one JSON object. All else is printed to stderr.

    Returns:
        0; 1 after a `UserError`, an `OSError` or an `ImportError`; `wrong_usage` after a wrong option; 130 after
        Ctrl-C; 141 if the reader of the output has ended.
    """
    _keep_root_logger()
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.encoding.lower().startswith("utf"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal in Latin-1 has no `≤`, which is no error
    try:
        with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
            context = make_context()
            with context:
                result = context.command.invoke(context)
        if as_json:
            print(json.dumps(result))
        sys.stdout.flush()  # here an error of writing is still reported
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as error:
        print(f"{prefix}: {one_line(error.format_message())} (see --help)", file=sys.stderr)
        return wrong_usage
    except UserError as error:
        message = str(error)
    except BrokenPipeError:  # the reader of the output has ended, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes the output again when it ends
        return 141  # as a shell reports SIGPIPE
    except ModuleNotFoundError as error:
        message = one_line(str(missing_library(error)))
    except ImportError as error:
        message = one_line(f"{error}; 'fairseq-capsule doctor' states what to install")
    except OSError as error:  # a full disk, a missing folder: the message names the file
        message = one_line(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        print(f"{prefix.removesuffix(': error')}: interrupted", file=sys.stderr)
        return 130
    print(f"{prefix}: {message}", file=sys.stderr)
    return 1


def _keep_root_logger() -> None:
    """Set the root logger to warnings, for the rest of the process. fairseq configures it only if it has no handler."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    if logging.lastResort not in root.handlers and logging.lastResort is not None:
        root.addHandler(logging.lastResort)  # what prints warnings of a logger without a handler
