"""`fairseq-capsule nll`: negative log-likelihood of a split's references under a model, in bits per token."""

import argparse
import json
import warnings
from pathlib import Path

from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule_lab.analysis.models import batches, negative_log_likelihood
from fairseq_capsule_lab.cli.arguments import input_file, input_folder, label


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoints", type=input_file, nargs="+", metavar="CHECKPOINT", help="trained models")
    parser.add_argument("--data", type=input_folder, required=True, help="the binarised data")
    parser.add_argument("--split", type=label, default="valid", help="the split of the data (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    with warnings.catch_warnings():
        # fairseq calls torch in ways that torch advises against. The user cannot change that.
        warnings.filterwarnings("ignore", category=UserWarning, module="torch")
        rows = [_measured(path, args.data, args.split) for path in args.checkpoints]
    for row in rows:
        print(f"{row['nll']:.3f} bits a token, {row['tokens']:,} tokens of {args.split}: {row['checkpoint']}")
    if args.json:
        print(json.dumps({"split": args.split, "rows": rows}))


def _measured(path: Path, data: Path, split: str) -> dict:
    """The mean over the target tokens, end-of-sentence included, with teacher forcing, in bits."""
    model, _, task = load_with_data(path, data)
    nll, tokens = 0.0, 0
    for sample in batches(task, split, f"nll {path.name}"):
        bits, number = negative_log_likelihood(model, sample, task.target_dictionary.pad())
        nll += bits
        tokens += number
    return {"checkpoint": str(path), "tokens": tokens, "nll": nll / tokens}
