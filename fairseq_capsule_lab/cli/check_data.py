"""`fairseq-capsule check-data`: check a prepared data folder before a model trains on it."""

import json
from argparse import Namespace
from dataclasses import asdict

from capsule_routing.errors import one_line
from fairseq_capsule_lab.cli.arguments import percentage, positive_int, prepared_data
from fairseq_capsule_lab.cli.commands import argument, command, flag, option

DIR = "OUT of a prepare script or its bin, or any folder made by fairseq-preprocess, which allows fewer checks."
UNKNOWN = "Maximum share of a text's tokens that are not in its dictionary."
OVERLAP = "Maximum share of a validation or test set that is also in the training set."


@command("check-data", "data/multi30k")
@argument("folder", prepared_data, DIR, "DIR")
@option("--longest", positive_int, "N", "Maximum tokens in a sentence.", default=1024)
@option("--most-unknown", percentage, "PERCENT", UNKNOWN, default=5)
@option("--most-overlap", percentage, "PERCENT", OVERLAP, default=1)
@flag("--json", "Print one JSON object instead of the table.")
def check_data(args: Namespace) -> int:
    """Check prepared data before a model trains on it. The exit status is 1 if there is something to fix."""
    from fairseq_capsule_lab.corpora import check
    from fairseq_capsule_lab.corpora.check_folder import Limits, is_train

    checked = check.check_data(args.folder, Limits(args.longest, args.most_unknown, args.most_overlap))
    findings = checked.faults
    if args.json:
        splits = {name: asdict(counts) for name, counts in checked.splits.items()}
        report = {"ok": not findings, "findings": list(map(asdict, findings)), "splits": splits, "notes": checked.notes}
        print(json.dumps(report))
        return 1 if findings else 0
    for name, split in checked.splits.items():
        unknown = ", ".join(f"{language} {share:.2f}%" for language, share in split.unknown.items())
        overlap = "" if is_train(name) else f", {split.overlap} of them in train"
        _print(f"{name:<8} {split.pairs} pairs{overlap}; unknown tokens: {unknown}")
    for line in (*(f"note: {note}" for note in checked.notes), *findings):
        _print(str(line))
    print(f"{len(findings)} to fix" if findings else "nothing to fix")
    return 1 if findings else 0


def _print(line: str) -> None:
    """Print a line. Names of files may have characters that control a terminal, so they are escaped."""
    print(one_line(line))
