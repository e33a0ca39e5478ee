"""`fairseq-capsule size`: how many parameters a model has, and how many of them are word embeddings."""

import argparse
import json
from pathlib import Path

from fairseq import checkpoint_utils
from torch import nn

from fairseq_capsule.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoints", type=Path, nargs="+", metavar="CHECKPOINT", help="trained models")
    parser.add_argument("--data", type=Path, required=True, help="the binarised data")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    for path in (*args.checkpoints, args.data):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
    models = [_sizes(path, args.data) for path in args.checkpoints]
    for model in models:
        print(
            f"{model['parameters']:>14,} parameters, {model['embeddings']:,} of them embeddings: {model['checkpoint']}"
        )
    if args.json:
        print(json.dumps({"models": models}))


def _sizes(path: Path, data: Path) -> dict:
    [model], _, _ = checkpoint_utils.load_model_ensemble_and_task([str(path)], {"data": str(data)})
    embeddings = {id(part.weight): part.weight for part in model.modules() if isinstance(part, nn.Embedding)}
    return {
        "checkpoint": str(path),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "embeddings": sum(weight.numel() for weight in embeddings.values()),
    }
