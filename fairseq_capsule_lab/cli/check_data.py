"""`fairseq-capsule check-data`: check a prepared data folder before a model trains on it."""

import argparse
import json
from dataclasses import asdict

from fairseq_capsule.errors import one_line
from fairseq_capsule_lab.cli.arguments import input_folder, percentage, positive_int
from fairseq_capsule_lab.corpora.check import check_folder
from fairseq_capsule_lab.corpora.check_text import Limits, is_train


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Limits()
    parser.add_argument(
        "folder",
        type=input_folder,
        metavar="DIR",
        help="the OUT of scripts/prepare-*.sh, or any folder made by fairseq-preprocess, which allows fewer checks",
    )
    parser.add_argument(
        "--longest",
        type=positive_int,
        default=defaults.longest,
        help="maximum tokens in a sentence (default: %(default)s)",
    )
    parser.add_argument(
        "--most-unknown",
        type=percentage,
        default=defaults.most_unknown,
        metavar="PERCENT",
        help="maximum share of a text's tokens that are not in its dictionary (default: %(default)s)",
    )
    parser.add_argument(
        "--most-overlap",
        type=percentage,
        default=defaults.most_overlap,
        metavar="PERCENT",
        help="maximum share of a validation or test set that is also in the training set (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")


def run(args: argparse.Namespace) -> int:
    report = check_folder(args.folder, Limits(args.longest, args.most_unknown, args.most_overlap))
    findings = report.findings
    if args.json:
        print(json.dumps({"ok": not findings, **asdict(report)}))
        return 1 if findings else 0
    for name, split in report.splits.items():
        unknown = ", ".join(f"{language} {share:.2f}%" for language, share in split.unknown.items())
        overlap = "" if is_train(name) else f", {split.overlap} of them in train"
        _print(f"{name:<8} {split.pairs} pairs{overlap}; unknown tokens: {unknown}")
    for note in report.notes:
        _print(f"note: {note}")
    for finding in findings:
        _print(str(finding))
    print(f"{len(findings)} to fix" if findings else "nothing to fix")
    return 1 if findings else 0


def _print(line: str) -> None:
    """Print a line. Names of files may have characters that control a terminal, so they are escaped."""
    print(one_line(line))
