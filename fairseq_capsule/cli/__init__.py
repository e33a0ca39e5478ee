"""`fairseq-capsule <command>`, the same as `python -m fairseq_capsule.cli <command>`.

A command is one module of this package with `add_arguments(parser)` and `run(args)`. It is imported only when it is
called, so that `doctor` runs in an environment where another command's libraries are missing.
"""

import argparse
import importlib
import logging
import sys
from typing import List, Optional

from fairseq_capsule.errors import UserError

COMMANDS = {
    "analyze": "tables and plots of translations by length, coverage, overlap, routing iterations and cases",
    "average": "average the last or the best checkpoints of a run",
    "check-data": "say what is wrong with prepared data, before a model trains on it",
    "doctor": "report what is wrong with this environment and how to fix it",
    "inspect": "write pages, pictures and arrays of what a model routes while it translates",
    "picture": "draw a sentence's attention, or its PAST and FUTURE",
    "probe": "how much of the target a vector of the source knows",
    "reproduce": "run what is missing of a paper's table, then print it (scripts/reproduce.sh)",
    "score": "BLEU and chrF of translations, ROUGE of summaries, each with its label and signature",
    "size": "how many parameters a model has",
    "table": "a paper's table with our figures beside the paper's; without a name, all tables",
    "toy-corpus": "write an embedded corpus: English-German-like sentences or headlines of Chinese news",
}


def build_parser(command: Optional[str] = None) -> argparse.ArgumentParser:
    """The parser of all commands; only `command`'s own arguments are added to it."""
    parser = argparse.ArgumentParser(
        prog="fairseq-capsule", description="Capsule routing for neural machine translation."
    )
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
    argv = sys.argv[1:] if argv is None else argv
    command = next((argument for argument in argv if not argument.startswith("-")), None)
    args = build_parser(command).parse_args(argv)
    try:
        return args.run(args) or 0
    except UserError as error:
        message = str(error)
    except OSError as error:  # a full disk, a missing folder: already a line that names the file
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except KeyboardInterrupt:
        print(f"fairseq-capsule {args.command}: interrupted", file=sys.stderr)
        return 130
    print(f"fairseq-capsule {args.command}: error: {message}", file=sys.stderr)
    return 1
