"""`fairseq-capsule export` and `import-model`: trained models in the format of another library, and back."""

import importlib
from argparse import Namespace

import click

from capsule_routing.errors import UserError
from capsule_routing.text.folders import binarised_folder, preparations, prepared_folder
from fairseq_capsule_lab import errors
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import USER_DIR, input_file, input_folder, prepared_data
from fairseq_capsule_lab.cli.commands import argument, command, option
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import new_folder

TASKS = ("translation", "capsule_translation", "capsule_summarization")  # others change the tokens


def licence(text: str) -> str:
    """A type: a name such as `mit` or `cc-by-4.0`."""
    return errors.name("--license", text)


@command("export", "runs/student/checkpoint_best.pt data/multi30k student --to transformers")
@argument("checkpoint", input_file, "A trained Transformer.")
@argument("data", prepared_data, "OUT of the prepare script, or its bin: dictionaries, codes, settings.")
@argument("out", arguments.absent_folder, "A new folder.")
@option("--to", click.Choice(["fairseq", "transformers"]), "", "The library that reads OUT.", required=True)
@option("--license", licence, "NAME", "transformers: the licence that the model card states.  [default: unknown]")
@option("--scores", input_file, "FILE", "transformers: a scores.json of scripts/evaluate.sh for the model card.")
@option("--dtype", click.Choice(["float16", "bfloat16"]), "", "transformers: half precision, a file of half the size.")
@USER_DIR
def export(args: Namespace) -> None:
    """Write a trained Transformer for another library, with all that raw text needs."""
    if args.to == "fairseq" and (args.license or args.scores or args.dtype):
        raise LabError("--license, --scores and --dtype belong to --to transformers; leave them out")
    if prepared_folder(args.data) is None:
        raise LabError(f"{args.data}: no 'bin' and 'settings' of a prepare script; name the OUT of a prepare script")
    from fairseq_capsule.checkpoints.models import load_model
    from fairseq_capsule.hub import quiet_loading

    library = importlib.import_module(f"fairseq_capsule_lab.export.to_{args.to}")
    with quiet_loading(args.checkpoint.name):
        model, config, task = load_model(args.checkpoint, binarised_folder(args.data).resolve())
    reason = library.refusal(model)
    if reason is None and config.task._name not in TASKS:
        reason = f"its task {config.task._name} changes the tokens"
    if reason is not None:
        remedy = "translate the training set with it (scripts/distill.sh), train a Transformer on the translations"
        problem = f"{reason}, so {library.NAME} cannot compute it"
        raise LabError(f"{args.checkpoint}: {problem}; {remedy}, and export that (docs/bridges.md)")
    sides = preparations(args.data, task.cfg.source_lang, task.cfg.target_lang)
    args.architecture = config.model._name
    try:
        with new_folder(args.out) as folder:
            library.write(model, task, sides, folder, args)
    except UserError as error:
        raise LabError(f"{args.checkpoint}: {error}") from error
    print(f"wrote {args.out}: {task.cfg.source_lang}-{task.cfg.target_lang} for {library.NAME}")


@command("import-model", "models/ja-en imported")
@argument("source", input_folder, "A model that transformers saved, with its tokenizer.")
@argument("out", arguments.absent_folder, "A new folder: model.pt, dictionaries, subwords and settings.")
def import_model(args: Namespace) -> None:
    """Write a model of Hugging Face transformers as a checkpoint and a prepared folder of fairseq.

    OUT is both: inspect OUT/model.pt OUT --text "…"
    """
    from fairseq_capsule_lab.export import from_transformers

    with new_folder(args.out) as folder:
        languages = from_transformers.write(args.source, folder)
    print(f"wrote {args.out}: {languages}; its checkpoint is {args.out}/{from_transformers.CHECKPOINT}")
