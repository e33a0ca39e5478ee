"""`fairseq-capsule probe`: how much of the target a trained probe predicts from what it reads of the source."""

import argparse
import json
from pathlib import Path

import torch

from fairseq_capsule.checkpoints.models import load_criterion, load_with_data
from fairseq_capsule.criterions import BagOfWordsProbe
from fairseq_capsule.criterions.bag_of_words_probe import TOPS
from fairseq_capsule_lab.analysis.models import batches
from fairseq_capsule_lab.cli.arguments import input_file, input_folder, label
from fairseq_capsule_lab.errors import LabError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkpoints", type=input_file, nargs="+", metavar="CHECKPOINT", help="probes trained with bag_of_words_probe"
    )
    parser.add_argument("--data", type=input_folder, required=True, help="the binarised data")
    parser.add_argument("--split", type=label, default="test", help="the split of the data (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    rows = [_evaluate(path, args.data, args.split) for path in args.checkpoints]
    print(f"share of a target's distinct words among the K most probable ones, mean over the sentences of {args.split}")
    print("  ".join([f"{'reads':8}", *(f"K = {top:<6}" for top in TOPS), "checkpoint"]))
    for row in rows:
        figures = (f"{row[f'bag_recall_{top}']:<10.4f}" for top in TOPS)
        print("  ".join([f"{row['reads']:8}", *figures, row["checkpoint"]]))
    if args.json:
        print(json.dumps({"split": args.split, "rows": rows}))


def _evaluate(path: Path, data: Path, split: str) -> dict:
    model, cfg, task = load_with_data(path, data)
    if cfg.criterion._name != "bag_of_words_probe":
        raise LabError(f"{path}: trained with {cfg.criterion._name}; give a model trained with bag_of_words_probe")
    criterion: BagOfWordsProbe = load_criterion(path, cfg, task)
    totals = dict.fromkeys((f"bag_recall_{top}" for top in TOPS), 0.0)
    sentences = 0
    for sample in batches(task, split, f"probe {path.name}"):
        with torch.no_grad():
            _, size, log = criterion(model, sample)
        sentences += size
        for name in totals:
            totals[name] += float(log[name])
    means = {name: total / sentences for name, total in totals.items()}
    return {"checkpoint": str(path), "reads": criterion.reads, "sentences": sentences, **means}
