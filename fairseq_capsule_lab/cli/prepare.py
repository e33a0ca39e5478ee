"""`fairseq-capsule prepare NAME`, which scripts/prepare*.sh call: prepare a corpus, and binarise it for fairseq."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli.arguments import MOST, NOT_RUN, given, input_folder, number, positive_int
from fairseq_capsule_lab.cli.commands import Command, Group
from fairseq_capsule_lab.corpora.own import is_address
from fairseq_capsule_lab.corpora.recipe import Recipe, Text, Words

# The module of each corpus, its recipe there, and the words of an example.
CORPORA = {
    "own": ("own", "OWN", "--source en --target de --train my.en my.de --valid-lines 1000 --test-lines 1000 data/my"),
    "multi30k": ("multi30k", "MULTI30K", "data/multi30k"),
    "wmt16-en-ro": ("wmt16", "EN_RO", "data/wmt16-en-ro"),
    "iwslt14-de-en": ("iwslt14", "DE_EN", "data/iwslt14-de-en"),
    "nist-zh-en": ("nist", "ZH_EN", "--from LDC data/nist-zh-en"),
    "lcsts": ("lcsts", "LCSTS", "--from LCSTS data/lcsts"),
    "toy": ("embedded", "TOY", "data/toy"),
    "headlines": ("embedded", "HEADLINES", "data/headlines"),
}
MANIFEST = "Command, versions, line counts of every part and stage, hashes."


def text(name: str) -> str:
    """A type: an address, or the absolute path of a file."""
    if is_address(name):
        return name
    if not os.path.isfile(name):
        raise UserError(f"{name}: no such file; give the file of the source language, then that of the target language")
    return os.path.realpath(name)


KINDS: dict[Any, Any] = {
    int: positive_int,
    float: number(0, MOST),
    str: given,
    Path: input_folder,
    Text: text,
    Words: given,
}


class Corpora(Group):
    """A command for each corpus, made from its recipe. NAME `own` is text of the user."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(CORPORA)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in CORPORA:
            return None
        module, name, example = CORPORA[cmd_name]
        recipe: Recipe = getattr(import_module(f"fairseq_capsule_lab.corpora.{module}"), name)
        return CorpusCommand(cmd_name, recipe, example)


class CorpusCommand(Command):
    """The command of a corpus. Its recipe has the options."""

    def __init__(self, name: str, recipe: Recipe, example: str):
        super().__init__(
            name,
            params=_params(recipe),
            help=f"{recipe.title}\n\n{recipe.notes}\n\n"
            "The same command resumes an interrupted run. It does nothing after a finished run.",
            results={"OUT/bin": f"Binarised: {recipe.sets}.", **recipe.results, "OUT/manifest.json": MANIFEST},
            example=example,
        )
        self.recipe = recipe

    def invoke(self, ctx: click.Context) -> None:
        from fairseq_capsule_lab.corpora.preparation import prepare

        choices = {option.name: ctx.params[option.name.replace("-", "_")] for option in self.recipe.options}
        out, dry_run = ctx.params["out"], ctx.params["dry_run"]
        prepare(self.recipe, choices, ctx.command_path, ctx.meta["words"], out, dry_run)


def _params(recipe: Recipe) -> list[click.Parameter]:
    params: list[click.Parameter] = [click.Argument(["out"], type=given, help="The folder to make.")]
    for option in recipe.options:
        kind = click.Choice(option.kind) if isinstance(option.kind, tuple) else KINDS.get(option.kind, option.kind)
        made = click.Option(
            [f"--{option.name}"],
            type=kind,
            metavar=option.value or None,
            help=option.help,
            required=option.required,
            is_flag=option.kind is bool or None,  # False would make the value optional
            nargs=2 if option.kind is Text else 1,
            multiple=option.kind in (Text, Words),
        )
        if option.default is not None:  # for click, None is a default too
            made.default = option.default
        params.append(made)
    return [*params, click.Option(["--dry-run"], is_flag=True, help=NOT_RUN)]


prepare = Corpora(
    "prepare",
    help="Prepare a corpus, and binarise it for fairseq. Each has its own options. `own` is your own parallel text.",
    example="multi30k data/multi30k",
)
