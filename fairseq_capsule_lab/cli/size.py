"""`fairseq-capsule size`: the parameters of a model, how many of them are word embeddings, and its readings."""

import argparse
import json
from pathlib import Path

from fairseq.modules import LearnedPositionalEmbedding
from torch import nn

from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.checkpoints.readings import in_words, readings
from fairseq_capsule_lab.cli.arguments import input_file, input_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoints", type=input_file, nargs="+", metavar="CHECKPOINT", help="trained models")
    parser.add_argument("--data", type=input_folder, required=True, help="the binarised data")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    models = [_sizes(path, args.data) for path in args.checkpoints]
    for model in models:
        reading = f" ({in_words(model['readings'])})" if model["readings"] else ""
        print(
            f"{model['parameters']:>14,} parameters, {model['embeddings']:,} of them embeddings: "
            f"{model['checkpoint']}{reading}"
        )
    if args.json:
        print(json.dumps({"models": models}))


def _sizes(path: Path, data: Path) -> dict:
    model, cfg, _ = load_with_data(path, data)
    embeddings = {
        id(part.weight): part.weight
        for part in model.modules()
        if isinstance(part, nn.Embedding) and not isinstance(part, LearnedPositionalEmbedding)
    }
    return {
        "checkpoint": str(path),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "embeddings": sum(weight.numel() for weight in embeddings.values()),
        "readings": readings(cfg.model),
    }
