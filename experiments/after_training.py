#!/usr/bin/env python3
"""Print the tables of what after-training.sh measured: after_training.py experiments/results/after-training

Figures are means over seeds ± their standard deviation.
"""

import argparse
import csv
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Dict, List, Optional, Sequence

VALID = re.compile(r"epoch 0*(\d+) .* loss ([\d.]+) \| nll_loss ([\d.]+)")
TESTS = ("test", "test1", "test2")


def rows_of(path: Path) -> List[Dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def chosen_epochs(folder: Path) -> Dict[str, int]:
    """The epoch of a seed that each criterion chooses; of equal ones the first."""
    found = VALID.findall((folder / "valid.log").read_text(encoding="utf-8"))
    bleu = {int(row["epoch"]): float(row["bleu"]) for row in rows_of(folder / "epochs.csv") if row["split"] == "valid"}
    losses, nlls = ({int(words[0]): float(words[place]) for words in found} for place in (1, 2))
    return {
        "total loss": min(losses, key=losses.__getitem__),
        "NLL": min(nlls, key=nlls.__getitem__),
        "BLEU": max(bleu, key=bleu.__getitem__),
        "last": max(bleu),
    }


def figure(values: Sequence[float], digits: int = 2) -> str:
    """The mean, with the standard deviation if there are several values."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def print_choices(seeds: Sequence[Path]) -> None:
    epochs = [chosen_epochs(folder) for folder in seeds]
    scores = [
        {(int(row["epoch"]), row["split"]): float(row["bleu"]) for row in rows_of(folder / "epochs.csv")}
        for folder in seeds
    ]
    rows = []
    for criterion in epochs[0]:
        chosen = [of_seed[criterion] for of_seed in epochs]
        tests = [mean(bleu[epoch, split] for split in TESTS) for bleu, epoch in zip(scores, chosen)]
        rows.append([criterion, ", ".join(map(str, chosen)), figure(tests)])
    print_table(["chosen by", "epochs", "BLEU"], rows)


def print_iterations(seeds: Sequence[Path]) -> None:
    """The difference of the mean BLEU of the tests to that with the iterations of the training."""
    found: Dict[str, Dict[int, List[float]]] = {}
    for folder in seeds:
        splits = [rows_of(folder / f"iterations-{split}.csv") for split in TESTS]
        for of_splits in zip(*splits):
            bleu = mean(float(row["bleu"]) for row in of_splits)
            of_system = found.setdefault(of_splits[0]["system"], {})
            of_system.setdefault(int(of_splits[0]["iterations"]), []).append(bleu)
    numbers = list(next(iter(found.values())))
    rows = []
    for system, bleus in found.items():
        cells = [figure([one - own for one, own in zip(bleus[number], bleus[3])]) for number in numbers]
        rows.append([system, *cells])
    print_table(["BLEU relative to three iterations", *map(str, numbers)], rows)


def print_formats(seeds: Sequence[Path]) -> None:
    found: Dict[str, Dict[str, List[Dict[str, str]]]] = {}
    for row in (row for folder in seeds for row in rows_of(folder / "formats.csv")):
        found.setdefault(row["model"], {}).setdefault(row["format"], []).append(row)
    rows = []
    for model, formats in found.items():
        for name, measured in formats.items():
            bleu, equal = ([float(row[key]) for row in measured] for key in ("bleu", "equal"))
            speeds = [float(row["speed"]) for row in measured if row["speed"]]
            rows.append([model, name, figure(equal, 0), figure(bleu), f"{mean(speeds):.2f}" if speeds else ""])
    print_table(["system", "format", "equal", "BLEU", "speed"], rows)


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the seeds, or of one with --epochs")
    parser.add_argument("--epochs", action="store_true", help="print the epochs of one seed that are chosen")
    args = parser.parse_args(arguments)
    if args.epochs:
        print(*sorted(set(chosen_epochs(args.folder).values())))
        return
    seeds = sorted(args.folder.glob("seed*"), key=lambda folder: int(folder.name.removeprefix("seed")))
    print_choices(seeds)
    # A seed of which not all is measured yet counts in the tables that have it.
    print_iterations([folder for folder in seeds if (folder / "iterations-test2.csv").exists()])
    print_formats([folder for folder in seeds if (folder / "formats.csv").exists()])


if __name__ == "__main__":
    main()
