"""`fairseq-capsule <command>`, the same as `python -m fairseq_capsule.cli <command>`.

A command is one module of this package with `add_arguments(parser)` and `run(args)`. It is imported only when it is
called, so that `doctor` runs in an environment where another command's libraries are missing.
"""

import argparse
import importlib
import logging
import re
import sys
import traceback
from typing import List, Optional, Tuple

from fairseq_capsule.cli.arguments import input_folder
from fairseq_capsule.errors import UserError, one_line

COMMANDS = {
    "analyze": "tables and plots of translations by length, coverage, overlap, routing iterations and cases",
    "average": "average the last or the best checkpoints of a run",
    "check-data": "say what is wrong with prepared data, before a model trains on it",
    "doctor": "report what is wrong with this environment and how to fix it",
    "inspect": "write pages, pictures and arrays of what a model routes while it translates",
    "nll": "the negative log-likelihood of a split's references under a model",
    "picture": "draw a sentence's attention, or its PAST and FUTURE",
    "probe": "how much of the target a vector of the source knows",
    "report": "compare evaluated runs on one page: scores, lengths, curves, speeds, sentences",
    "reproduce": "run what is missing of a paper's table, then print it (scripts/reproduce.sh)",
    "score": "BLEU and chrF of translations, ROUGE of summaries, each with its label and signature",
    "serve": "translate in a browser, with what the model routes, the model being loaded once",
    "size": "how many parameters a model has",
    "table": "a paper's table with our figures beside the paper's; without a name, all tables",
    "toy-corpus": "write an embedded corpus: English-German-like sentences or headlines of Chinese news",
}


USER_DIR = "a plugin with mechanisms of your own (docs/extending.md), as for fairseq-train"


def build_parser(command: Optional[str] = None) -> argparse.ArgumentParser:
    """The parser of all commands; only `command`'s own arguments are added to it."""
    parser = argparse.ArgumentParser(
        prog="fairseq-capsule", description="Capsule routing for neural machine translation."
    )
    parser.add_argument("--user-dir", metavar="DIR", help=USER_DIR)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == command:
            module = importlib.import_module("fairseq_capsule.cli." + name.replace("-", "_"))
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; returns the exit status: 0, 1 after a `UserError` or a system's error, 130 after Ctrl-C."""
    logging.getLogger().setLevel(logging.WARNING)  # fairseq sets it to a level at which libraries tell how they work
    plugin, argv = _user_dir(sys.argv[1:] if argv is None else argv)
    command = next((argument for argument in argv if not argument.startswith("-")), None)
    try:
        if plugin is not None:
            _import_plugin(plugin)
        for word in argv:
            if re.fullmatch(r"--[\w-]+=--", word):  # which argparse takes for no value, and hands on a list
                raise UserError(f"{word}: -- is no value; give another one")
        args = build_parser(command).parse_args(argv)  # which looks at files and folders too
        status = args.run(args) or 0
        sys.stdout.flush()  # while an error can still be told
        return status
    except UserError as error:
        message = str(error)
    except OSError as error:  # a full disk, a missing folder: already a line that names the file
        message = one_line(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        print(f"fairseq-capsule {command}: interrupted", file=sys.stderr)
        return 130
    print(f"fairseq-capsule {command}: error: {message}", file=sys.stderr)
    return 1


def _user_dir(argv: List[str]) -> Tuple[Optional[str], List[str]]:
    """The value of `--user-dir`, wherever it stands, and the other arguments."""
    parser = argparse.ArgumentParser(prog="fairseq-capsule", add_help=False, allow_abbrev=False)
    parser.add_argument("--user-dir")
    found, rest = parser.parse_known_args(argv)
    return found.user_dir, rest


def _import_plugin(folder: str) -> None:
    from fairseq import utils

    if not (input_folder(folder) / "__init__.py").is_file():
        raise UserError(f"--user-dir {folder}: no package there; name the folder that has its __init__.py")
    try:
        utils.import_user_module(argparse.Namespace(user_dir=folder))
    except (Exception, SystemExit) as error:  # whatever somebody's program raises
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise UserError(
            f"--user-dir {folder}: it cannot be imported ({reason}, in {place.filename}, line {place.lineno}); "
            "correct the plugin"
        ) from error
