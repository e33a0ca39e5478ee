"""`fairseq-capsule prepare NAME`, which scripts/prepare*.sh call: prepare a corpus, and binarise it for fairseq."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from fairseq_capsule_lab.cli.arguments import MOST, NOT_RUN, given, input_folder, number, positive_int
from fairseq_capsule_lab.cli.commands import Command, Group
from fairseq_capsule_lab.corpora.own import take_texts
from fairseq_capsule_lab.corpora.recipe import Recipe

# The module of each corpus, its recipe there, and the words of an example.
CORPORA = {
    "own": ("own", "OWN", "--source en --target de --train my/train --valid my/valid --test my/test data/my"),
    "multi30k": ("multi30k", "MULTI30K", "data/multi30k"),
    "wmt16-en-ro": ("wmt16", "EN_RO", "data/wmt16-en-ro"),
    "iwslt14-de-en": ("iwslt14", "DE_EN", "data/iwslt14-de-en"),
    "nist-zh-en": ("nist", "ZH_EN", "--from LDC data/nist-zh-en"),
    "lcsts": ("lcsts", "LCSTS", "--from LCSTS data/lcsts"),
    "toy": ("embedded", "TOY", "data/toy"),
    "headlines": ("embedded", "HEADLINES", "data/headlines"),
}
KINDS: dict[Any, Any] = {int: positive_int, float: number(0, MOST), str: given, Path: input_folder}
MANIFEST = "Command, versions, line counts of every part and stage, hashes."


# Of own text, for its help. `take_texts` reads them.
TEXTS = [
    click.Option([f"--{split}"], metavar="TEXT", expose_value=False, help=f"The {name} text. May be repeated.")
    for split, name in (("train", "training"), ("valid", "validation"), ("test", "test"))
]


class Corpora(Group):
    """A command for each corpus, made from its recipe. NAME `own` is text of the user."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(CORPORA)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in CORPORA:
            return None
        module, name, example = CORPORA[cmd_name]
        recipe: Recipe = getattr(import_module(f"fairseq_capsule_lab.corpora.{module}"), name)
        is_own = cmd_name == "own"
        return (OwnText if is_own else Command)(
            cmd_name,
            callback=partial(_prepare, recipe),
            params=[*(TEXTS if is_own else ()), *_params(recipe)],
            help=f"{recipe.title}\n\n{recipe.notes}\n\n"
            "The same command resumes an interrupted run. It does nothing after a finished run.",
            results={"OUT/bin": f"Binarised: {recipe.sets}.", **recipe.results, "OUT/manifest.tsv": MANIFEST},
            example=example,
        )


class OwnText(Command):
    """The command of the user's own text: an option with a text has one or two values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        found, rest = take_texts(words)
        rest = super().parse_args(ctx, rest)
        ctx.params.update(found)
        ctx.meta["words"] = words
        return rest


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
        )
        if option.default is not None:  # for click, None is a default too
            made.default = option.default
        params.append(made)
    return [*params, click.Option(["--dry-run"], is_flag=True, help=NOT_RUN)]


def _prepare(recipe: Recipe, out: str, dry_run: bool, **values: Any) -> None:
    from fairseq_capsule_lab.corpora.preparation import prepare

    context = click.get_current_context()
    options = {name.replace("_", "-"): value for name, value in values.items()}
    prepare(recipe, options, context.command_path, context.meta["words"], out, dry_run)


prepare = Corpora(
    "prepare",
    help="Prepare a corpus, and binarise it for fairseq. Each has its own options. `own` is your own parallel text.",
    example="multi30k data/multi30k",
)
