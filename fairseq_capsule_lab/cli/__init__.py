"""`fairseq-capsule <command>`, the same as `python -m fairseq_capsule_lab.cli <command>`.

A command is a function of a module of this package, with the command's name. The module is imported only when the
command is called, so that `doctor` also runs in an environment where the libraries of another command are missing. A
module imports torch, fairseq and other large libraries where it calls them, so that `--help` is printed at once.
"""

import importlib
import os
import sys
from collections.abc import Sequence

import click

from fairseq_capsule_lab.cli.arguments import USER_DIR
from fairseq_capsule_lab.cli.commands import Group, run_command

COMMANDS = {
    "analyze": "Tables and plots of translations: lengths, coverage, overlap, routing iterations, cases.",
    "average": "Average the last or the best checkpoints of a run.",
    "check-data": "Check prepared data before a model trains on it.",
    "distill": "Translate a training set with a teacher, as the data of students.",
    "doctor": "Report what is wrong with this environment and how to fix it.",
    "evaluate": "Average checkpoints, translate and score.",
    "export": "Write a Transformer for Hugging Face transformers, or for fairseq without this package.",
    "filter": "A step of scripts/prepare-wmt*.sh that no other tool does.",
    "import-model": "Write a model of Hugging Face transformers as a checkpoint of fairseq.",
    "inspect": "Pages, pictures and arrays of what a model routes while it translates.",
    "nll": "Negative log-likelihood of a split's references under a model.",
    "picture": "Draw the attention of a sentence, or its PAST and FUTURE.",
    "prepare": "Prepare a corpus and binarise it.",
    "probe": "Measure how much of the target a vector of the source predicts.",
    "report": "Compare evaluated runs on one page: scores, lengths, curves, sentences.",
    "score": "BLEU and chrF of translations, or ROUGE of summaries, with labels and signatures.",
    "seeds": "Compare systems that were trained with several seeds.",
    "serve": "A page that translates and shows what the model routes.",
    "size": "Count the parameters of a model.",
    "toy-corpus": "Write an embedded corpus: English-German sentences, or Chinese news with headlines.",
    "train": "Train a model on a CPU, or on the GPUs of one or several nodes.",
}
# Commands in a module of another name.
MODULES = {
    **dict.fromkeys(("nll", "probe", "size"), "measure"),
    **{"import-model": "export", "picture": "inspect", "seeds": "score"},
}
SCRIPTS = ("distill", "evaluate", "prepare", "train")  # their status is 1 after a wrong option, as that of a script
NAME = "fairseq-capsule"


class Commands(Group):
    """The commands of this package. Each is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module("fairseq_capsule_lab.cli." + MODULES.get(cmd_name, cmd_name).replace("-", "_"))
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


fairseq_capsule = Commands(
    NAME,
    help="Capsule routing for neural machine translation.",
    example="doctor",
)
USER_DIR(fairseq_capsule)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    A script of the repository names itself by the variable CAPSULE_PROGRAM.

    Returns:
        that of `run_command`.
    """
    if "_FAIRSEQ_CAPSULE_COMPLETE" in os.environ:
        fairseq_capsule.main(prog_name=NAME)  # prints what a shell completes, and ends
    words = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in words if word in COMMANDS), "")
    program = os.environ.pop("CAPSULE_PROGRAM", None)
    prefix = program or f"{NAME} {name}".strip() + ("" if name in SCRIPTS else ": error")
    wrong_usage = 1 if name in SCRIPTS else 2
    return run_command(prefix, lambda: _context(program, words), wrong_usage, "--json" in words)


def _context(program: str | None, words: list[str]) -> click.Context:
    """Parse the words of a command line. A script has the name `program` and calls one command."""
    command: click.Command = fairseq_capsule
    while program and isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            break
        command, words = found, words[1:]
    return command.make_context(program or NAME, words)
