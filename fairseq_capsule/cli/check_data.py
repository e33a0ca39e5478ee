"""`fairseq-capsule check-data`: what is wrong with a prepared data folder, before a model trains on it."""

import argparse
import json
from dataclasses import asdict

from fairseq_capsule.cli.arguments import input_folder, percentage, positive_int
from fairseq_capsule.data.folder_checks import FolderCheck, Limits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Limits()
    parser.add_argument(
        "folder", type=input_folder, metavar="DIR", help="what scripts/prepare-*.sh made: OUT, not OUT/bin"
    )
    parser.add_argument(
        "--longest",
        type=positive_int,
        default=defaults.longest,
        help="most tokens of a sentence (default: %(default)s)",
    )
    parser.add_argument(
        "--most-unknown",
        type=percentage,
        default=defaults.most_unknown,
        metavar="PERCENT",
        help="of a text's tokens that its dictionary lacks (default: %(default)s)",
    )
    parser.add_argument(
        "--most-overlap",
        type=percentage,
        default=defaults.most_overlap,
        metavar="PERCENT",
        help="of a validation or test set's pairs that are in the training set, too (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")


def run(args: argparse.Namespace) -> int:
    check = FolderCheck(args.folder, Limits(args.longest, args.most_unknown, args.most_overlap))
    findings = list(check.findings())
    if args.json:
        splits = {name: asdict(split) for name, split in check.splits.items()}
        print(json.dumps({"ok": not findings, "findings": [asdict(finding) for finding in findings], "splits": splits}))
        return 1 if findings else 0
    for name, split in check.splits.items():
        unknown = ", ".join(f"{language} {share:.2f}%" for language, share in split.unknown.items())
        overlap = "" if name == "train" else f", {split.overlap} of them in train"
        print(f"{name:<8} {split.pairs} pairs{overlap}; unknown tokens: {unknown}")
    for finding in findings:
        print(finding)
    print(f"{len(findings)} to mend" if findings else "nothing to mend")
    return 1 if findings else 0
