"""`fairseq-capsule check-data`: check a prepared data folder before a model trains on it."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from fairseq_capsule_lab.cli.arguments import input_folder, percentage, positive_int
from fairseq_capsule_lab.corpora.binarised_folder import check_binarised_folder, is_train
from fairseq_capsule_lab.corpora.folder_checks import Checked, Limits, check_folder, final_text


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


def _check(folder: Path, limits: Limits) -> Checked:
    """Check the text and the binarised data, or only the binarised data if the folder has no text."""
    if final_text(folder) or (folder / "settings").is_file():  # a prepared folder without its text is damaged
        return check_folder(folder, limits)
    return check_binarised_folder(folder / "bin" if (folder / "bin").is_dir() else folder, limits)


def run(args: argparse.Namespace) -> int:
    checked = _check(args.folder, Limits(args.longest, args.most_unknown, args.most_overlap))
    findings = checked.findings
    if args.json:
        print(json.dumps({"ok": not findings, **asdict(checked)}))
        return 1 if findings else 0
    for name, split in checked.splits.items():
        unknown = ", ".join(f"{language} {share:.2f}%" for language, share in split.unknown.items())
        overlap = "" if is_train(name) else f", {split.overlap} of them in train"
        print(f"{name:<8} {split.pairs} pairs{overlap}; unknown tokens: {unknown}")
    for note in checked.notes:
        print(f"note: {note}")
    for finding in findings:
        print(finding)
    print(f"{len(findings)} to fix" if findings else "nothing to fix")
    return 1 if findings else 0
