"""`fairseq-capsule check-data`: check a prepared data folder before a model trains on it."""

from pathlib import Path

from fairseq_capsule_lab.cli.arguments import number, positive_int, prepared_data
from fairseq_capsule_lab.cli.commands import argument, command, option

DIR = "OUT of a prepare script or its bin, or a folder of fairseq-preprocess, which allows fewer checks."
UNKNOWN = "Maximum share of a text's tokens that are not in its dictionary."
OVERLAP = "Maximum share of a validation or test set that is also in the training set."


@command("check-data", "data/multi30k")
@argument("folder", prepared_data, DIR, "DIR")
@option("--longest", positive_int, "N", "Maximum tokens in a sentence.", default=1024)
@option("--most-unknown", number(0, 100), "PERCENT", UNKNOWN, default=5)
@option("--most-overlap", number(0, 100), "PERCENT", OVERLAP, default=1)
def check_data(folder: Path, longest: int, most_unknown: float, most_overlap: float) -> int:
    """Check prepared data before a model trains on it. The exit status is 1 if there is something to fix."""
    from fairseq_capsule_lab.corpora.check import Check

    check = Check(folder, longest, most_unknown, most_overlap)
    check.run()
    faults = list(check.faults.values())
    for name, split in check.splits.items():
        unknown = ", ".join(f"{language} {share:.2f}%" for language, share in split.unknown.items())
        overlap = "" if name.startswith("train") else f", {split.overlap} of them in train"
        print(f"{name:<8} {split.pairs} pairs{overlap}; unknown tokens: {unknown}")
    for line in (*(f"note: {note}" for note in check.notes), *faults):
        print(line)
    print(f"{len(faults)} to fix" if faults else "nothing to fix")
    return 1 if faults else 0
