"""`fairseq-capsule check-data`: check a prepared data folder before a model trains on it."""

import argparse
import json
from dataclasses import asdict

from capsule_routing.errors import one_line
from fairseq_capsule_lab.cli.arguments import input_folder, percentage, positive_int
from fairseq_capsule_lab.corpora.check import check_data
from fairseq_capsule_lab.corpora.check_folder import Limits, is_train

DIR = "the OUT of scripts/prepare-*.sh, or any folder made by fairseq-preprocess, which allows fewer checks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    limits = Limits()
    add("folder", type=input_folder, metavar="DIR", help=DIR)
    text = "maximum tokens in a sentence (default: %(default)s)"
    add("--longest", type=positive_int, default=limits.longest, help=text)
    text = "maximum share of a text's tokens that are not in its dictionary (default: %(default)s)"
    add("--most-unknown", type=percentage, metavar="PERCENT", default=limits.most_unknown, help=text)
    text = "maximum share of a validation or test set that is also in the training set (default: %(default)s)"
    add("--most-overlap", type=percentage, metavar="PERCENT", default=limits.most_overlap, help=text)
    add("--json", action="store_true", help="print one JSON object instead of the table")


def run(args: argparse.Namespace) -> int:
    check = check_data(args.folder, Limits(args.longest, args.most_unknown, args.most_overlap))
    findings = check.faults
    if args.json:
        splits = {name: asdict(counts) for name, counts in check.splits.items()}
        report = {"ok": not findings, "findings": list(map(asdict, findings)), "splits": splits, "notes": check.notes}
        print(json.dumps(report))
        return 1 if findings else 0
    for name, split in check.splits.items():
        unknown = ", ".join(f"{language} {share:.2f}%" for language, share in split.unknown.items())
        overlap = "" if is_train(name) else f", {split.overlap} of them in train"
        _print(f"{name:<8} {split.pairs} pairs{overlap}; unknown tokens: {unknown}")
    for line in (*(f"note: {note}" for note in check.notes), *findings):
        _print(str(line))
    print(f"{len(findings)} to fix" if findings else "nothing to fix")
    return 1 if findings else 0


def _print(line: str) -> None:
    """Print a line. Names of files may have characters that control a terminal, so they are escaped."""
    print(one_line(line))
