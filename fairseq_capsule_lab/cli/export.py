"""`fairseq-capsule export`: write a trained model in the format of another library, with all that raw text needs."""

import argparse
import dataclasses
import json

from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES

from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.errors import UserError
from fairseq_capsule.hub import quiet_loading
from fairseq_capsule_lab.cli.arguments import input_file, input_folder, output_folder
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.export.to_ctranslate2 import refusal, specification
from fairseq_capsule_lab.files import new_folder
from fairseq_capsule_lab.runs.prepared import preparation, require_prepared

TASKS = ("translation", "capsule_translation", "capsule_summarization")  # others change the tokens
CODES = {"subword-nmt": "codes", "sentencepiece": "sentencepiece.model"}  # the file in OUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=input_file, metavar="CHECKPOINT", help="a trained Transformer, not routed")
    parser.add_argument(
        "data", type=input_folder, metavar="DATA", help="OUT of the prepare script: dictionaries, codes, settings"
    )
    parser.add_argument("out", type=output_folder, metavar="OUT", help="a new folder")
    parser.add_argument("--to", choices=["ctranslate2"], required=True, help="the library that reads OUT")
    parser.add_argument(
        "--quantization", choices=ACCEPTED_MODEL_TYPES, help="the type of the weights (default: float32)"
    )


def run(args: argparse.Namespace) -> None:
    if args.out.is_symlink() or args.out.exists():
        raise LabError(f"{args.out}: exists already; name a new folder")
    require_prepared(args.data)
    with quiet_loading(args.checkpoint.name):
        model, config, task = load_model(args.checkpoint, (args.data / "bin").resolve())
    reason = refusal(model)
    if reason is None and config.task._name not in TASKS:
        reason = f"its task {config.task._name} changes the tokens"
    if reason is not None:
        raise LabError(
            f"{args.checkpoint}: {reason}, so CTranslate2 cannot compute it; translate the training set with it "
            "(scripts/distill.sh), train a Transformer on the translations, and export that (docs/bridges.md)"
        )
    text = preparation(args.data, task.cfg.source_lang, task.cfg.target_lang)
    try:
        exported = specification(model, task.source_dictionary, task.target_dictionary)
    except UserError as error:
        raise LabError(f"{args.checkpoint}: {error}") from error
    codes = CODES.get(text.subwords)
    if codes:
        exported.register_file(str(text.codes), codes)
    exported.validate()
    exported.optimize(args.quantization)
    note = {**dataclasses.asdict(text), "codes": codes}
    with new_folder(args.out) as folder:
        exported.save(str(folder))
        (folder / "text.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {args.out}: {task.cfg.source_lang}-{task.cfg.target_lang} for CTranslate2")
