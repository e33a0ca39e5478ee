"""`fairseq-capsule export` and `import-model`: trained models in the format of another library, and back."""

from pathlib import Path

import click

from capsule_routing.errors import UserError
from capsule_routing.text.folders import binarised_folder, preparations, prepared_folder
from fairseq_capsule_lab import values
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import USER_DIR, input_file, input_folder, prepared_data
from fairseq_capsule_lab.cli.commands import argument, command, option
from fairseq_capsule_lab.files import new_folder

TASKS = ("translation", "capsule_translation", "capsule_summarization")  # others change the tokens


def licence(text: str) -> str:
    """A type: a name such as `mit` or `cc-by-4.0`."""
    return values.checked_name("--license", text)


@command("export", "runs/student/checkpoint_best.pt data/multi30k student --to transformers")
@argument("checkpoint", input_file, "A trained Transformer.")
@argument("data", prepared_data, "OUT of the prepare script, or its bin: dictionaries, codes, settings.")
@argument("out", arguments.absent_folder, "A new folder.")
@option("--to", click.Choice(["fairseq", "transformers"]), "", "The library that reads OUT.", required=True)
@option("--license", licence, "NAME", "transformers: the licence that the model card states.  [default: unknown]")
@option("--scores", input_file, "FILE", "transformers: a scores.json of scripts/evaluate.sh for the model card.")
@option("--dtype", click.Choice(["float16", "bfloat16"]), "", "transformers: half precision, a file of half the size.")
@USER_DIR
def export(
    checkpoint: Path, data: Path, out: Path, to: str, license: str | None, scores: Path | None, dtype: str | None
) -> None:
    """Write a trained Transformer for another library, with all that raw text needs."""
    if to == "fairseq" and (license or scores or dtype):
        raise UserError("--license, --scores and --dtype belong to --to transformers; leave them out")
    if prepared_folder(data) is None:
        raise UserError(f"{data}: no 'bin' and 'settings.json' of a prepare script; name the OUT of a prepare script")
    from fairseq_capsule.checkpoints.models import load_model
    from fairseq_capsule.hub import quiet_loading

    with quiet_loading(checkpoint.name):
        model, config, task = load_model(checkpoint, binarised_folder(data).resolve())
    if to == "fairseq":
        from fairseq_capsule_lab.export import to_fairseq

        reason, library = to_fairseq.refusal(model), to_fairseq.NAME
    else:
        from fairseq_capsule_lab.export import to_transformers
        from fairseq_capsule_lab.export.model_card import CardFacts

        reason, library = to_transformers.refusal(model), to_transformers.NAME
    if reason is None and config.task._name not in TASKS:
        reason = f"its task {config.task._name} changes the tokens"
    if reason is not None:
        remedy = "translate the training set with it (scripts/distill.sh), train a Transformer on the translations"
        problem = f"{reason}, so {library} cannot compute it"
        raise UserError(f"{checkpoint}: {problem}; {remedy}, and export that (docs/bridges.md)")
    source, target = task.cfg.source_lang, task.cfg.target_lang
    sides = preparations(data, source, target)
    assert sides  # of a prepared folder
    try:
        with new_folder(out) as folder:
            if to == "fairseq":
                to_fairseq.write(model, task, folder)
            else:
                facts = CardFacts(checkpoint, data, out, config.model._name, license or "unknown", scores)
                to_transformers.write(model, task, sides, folder, facts, dtype)
    except UserError as error:
        raise UserError(f"{checkpoint}: {error}") from error
    print(f"wrote {out}: {source}-{target} for {library}")


@command("import-model", "examples/ja-en imported")
@argument("source", input_folder, "A model that transformers saved, with its tokenizer.")
@argument("out", arguments.absent_folder, "A new folder: model.pt, dictionaries, subwords and settings.")
def import_model(source: Path, out: Path) -> None:
    """Write a model of Hugging Face transformers as a checkpoint and a prepared folder of fairseq.

    OUT is both: inspect OUT/model.pt OUT --text "…"
    """
    from fairseq_capsule_lab.export import from_transformers

    with new_folder(out) as folder:
        languages = from_transformers.write(source, folder)
    print(f"wrote {out}: {languages}; its checkpoint is {out}/{from_transformers.CHECKPOINT}")
