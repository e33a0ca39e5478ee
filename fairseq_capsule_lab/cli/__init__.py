"""`fairseq-capsule <command>`, the same as `python -m fairseq_capsule_lab.cli <command>`.

A command is a module of this package with `add_arguments(parser)` and `run(args)`, which may return an exit status or
the object that `--json` prints. Commands that share a module have `add_NAME_arguments` and `run_NAME` there. A module
is imported only when its command is called, so that `doctor` also runs in an environment where the libraries of another
command are missing.
"""

import argparse
import codecs
import importlib
import io
import json
import logging
import os
import re
import sys
import traceback
from typing import List, Optional, Tuple

from capsule_routing.errors import UserError, missing_library, one_line
from fairseq_capsule_lab.cli.arguments import input_folder
from fairseq_capsule_lab.errors import LabError

COMMANDS = {
    "analyze": "write tables and plots of translations: lengths, coverage, overlap, routing iterations, cases",
    "average": "average the last or the best checkpoints of a run",
    "check-data": "check prepared data before a model trains on it",
    "doctor": "report what is wrong with this environment and how to fix it",
    "export": "write a Transformer for fairseq without this package, CTranslate2, or Hugging Face transformers",
    "filter": "do a step of scripts/prepare-wmt*.sh that no other tool does: filter lines or pairs",
    "inspect": "write pages, pictures and arrays of what a model routes while it translates",
    "nll": "compute the negative log-likelihood of a split's references under a model",
    "picture": "draw the attention of a sentence, or its PAST and FUTURE",
    "probe": "measure how much of the target a vector of the source predicts",
    "report": "compare evaluated runs on one page: scores, lengths, curves, sentences",
    "reproduce": "run the missing steps of a paper's table, then print the table (scripts/reproduce.sh)",
    "score": "compute BLEU and chrF of translations or ROUGE of summaries, each with its label and signature",
    "seeds": "compare systems trained with several seeds: intervals and p over seeds and sentences",
    "serve": "serve a page that translates and shows what the model routes; the model is loaded once",
    "size": "count the parameters of a model",
    "table": "print a paper's table with our figures beside the paper's; without a name, list the tables",
    "toy-corpus": "write an embedded corpus: English-German sentences, or Chinese news with headlines",
}

# Commands in a module of another name.
MODULES = {
    **dict.fromkeys(("nll", "probe", "size"), "measure"),
    **{"picture": "inspect", "reproduce": "table", "seeds": "score"},
}

# Commands that scripts of the repository call. They read their own words. Their help is the docstring of their module.
SCRIPTS = {
    "distill": "translate a training set with a teacher, as the data of students (scripts/distill.sh)",
    "evaluate": "average checkpoints, translate and score (scripts/evaluate.sh)",
    "prepare": "prepare a corpus and binarise it (scripts/prepare*.sh)",
    "train": "train a model on a CPU, or on the GPUs of one or several nodes (scripts/train.sh)",
}
USER_DIR = "a plugin with your own mechanisms (docs/extending.md), as for fairseq-train"


def build_parser(command: Optional[str] = None, program: Optional[str] = None) -> argparse.ArgumentParser:
    """The parser of all commands. Only `command` gets its own arguments; `program` is what its help calls it."""
    text = "Capsule routing for neural machine translation."
    parser = argparse.ArgumentParser(prog="fairseq-capsule", description=text)
    parser.add_argument("--user-dir", metavar="DIR", help=USER_DIR)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in sorted({**COMMANDS, **SCRIPTS}.items()):
        text = summary[0].upper() + summary[1:] + "."
        prog = program if name == command else None
        subparser = subparsers.add_parser(name, help=summary, description=text, prog=prog)
        if name == command:
            module = importlib.import_module("fairseq_capsule_lab.cli." + MODULES.get(name, name).replace("-", "_"))
            shared = hasattr(module, f"run_{name}")
            getattr(module, f"add_{name}_arguments" if shared else "add_arguments")(subparser)
            subparser.set_defaults(run=getattr(module, f"run_{name}" if shared else "run"))
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command and return the exit status.

    Returns:
        0; 1 after a `LabError`, an `OSError` or an `ImportError`; 130 after Ctrl-C; 141 if the reader of the output
        has ended.
    """
    _keep_root_logger()
    # A notebook has another kind of output, and UTF-8 lacks no character.
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        sys.stdout.reconfigure(errors="backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    program = os.environ.pop("CAPSULE_PROGRAM", None)
    is_script = bool(argv) and argv[0] in SCRIPTS
    plugin, argv = (None, argv) if is_script else _user_dir(argv)
    command = next((argument for argument in argv if not argument.startswith("-")), None)
    prefix = program or f"fairseq-capsule {command}" + ("" if is_script else ": error")
    try:
        if command in SCRIPTS:
            return _run_script(prefix, *argv)
        if plugin is not None:
            _import_plugin(plugin)
        for word in argv:
            if re.fullmatch(r"--[\w-]+=--", word):  # argparse drops the `--` and passes on a list
                raise LabError(f"{word}: -- is not a value; give another value")
        args = build_parser(command, program).parse_args(argv)  # checks files and folders too
        args.user_dir = plugin
        result = args.run(args)
        if isinstance(result, dict) and args.json:
            print(json.dumps(result))
        sys.stdout.flush()  # here an error of writing is still reported
        return result if isinstance(result, int) else 0
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


def _run_script(program: str, command: str, *words: str) -> int:
    module = importlib.import_module("fairseq_capsule_lab.cli." + command)
    if {"-h", "--help"}.intersection(words):
        text = (module.__doc__ or "").replace(f"{command}.sh", program)
        print((module.help_of(program, words) if command == "prepare" else text).rstrip())
    else:
        module.run(program, words)
        sys.stdout.flush()
    return 0


def _user_dir(argv: List[str]) -> Tuple[Optional[str], List[str]]:
    """The value of `--user-dir`, at any position, and the other arguments."""
    parser = argparse.ArgumentParser(prog="fairseq-capsule", add_help=False, allow_abbrev=False)
    parser.add_argument("--user-dir")
    known, rest = parser.parse_known_args(argv)
    return known.user_dir, rest


def _import_plugin(folder: str) -> None:
    from fairseq import utils

    if not (input_folder(folder) / "__init__.py").is_file():
        raise LabError(f"--user-dir {folder}: no package there; name the folder that contains __init__.py")
    try:
        utils.import_user_module(argparse.Namespace(user_dir=folder))
    except (Exception, SystemExit) as error:  # a plugin may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        problem = f"it cannot be imported ({reason}, in {place.filename}, line {place.lineno})"
        raise LabError(f"--user-dir {folder}: {problem}; correct the plugin") from error
