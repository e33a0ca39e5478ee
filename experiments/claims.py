#!/usr/bin/env python3
"""Print the table of claims of docs/results.md: the verdicts on `results/claims.yaml`, from the tables in a folder.

A claim is judged with at least three seeds, by an interval. The verdict is the first that holds:

- agrees: the interval excludes 0 in the paper's direction (smaller or larger, if it excludes the paper's figure too);
  with bounds, it is inside them
- differs: it excludes the paper's figure; with bounds, it is outside them
- open: everything else, with the reason

All intervals together are right in 95% of cases: with `m` of them, each has the level 5%/m (Bonferroni).
"""

import argparse
import csv
import math
from pathlib import Path

import yaml

RESULTS = Path(__file__).resolve().parent / "results"
FEW = {1: "one seed", 2: "two seeds"}  # too few for a verdict


def read_claims():
    """Return the claims of each paper."""
    return yaml.safe_load((RESULTS / "claims.yaml").read_text(encoding="utf-8"))


def read_figure(claim, folder):
    """Return the line of a table with our figure of a claim; None if the table is not trained yet."""
    path = folder / f"{claim['table']}.csv"
    if not path.exists():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if (line["row"].removeprefix("'"), line["column"]) == (claim["row"], claim["column"]):
                return line
    raise LookupError(f"{claim['table']}.csv has no row {claim['row']!r} with a column {claim['column']!r}")


def interval(claim, line, level):
    """Return the lowest and the highest value of the interval at a level, such as 0.05."""
    from fairseq_capsule_lab.evaluation.seeds import half_width  # takes seconds, and --help does not need it

    seeds = int(line["seeds"])
    if claim.get("figure") == "mean":
        error, over_sentences = float(line["spread"]) / math.sqrt(seeds), 0.0
        middle = float(line["mean"])
    else:
        error, over_sentences = float(line["error_over_seeds"]), float(line["error_over_sentences"])
        middle = float(line["difference"])
    half = float(half_width(error**2, over_sentences, seeds, level))
    return middle - half, middle + half


def verdict(claim, low, high):
    """Apply the rule to an interval."""
    if "bounds" in claim:
        least, most = claim["bounds"]
        if (least is None or least <= low) and (most is None or high <= most):
            return "agrees"
        outside = (least is not None and high < least) or (most is not None and most < low)
        return "differs" if outside else "open: interval too wide"
    least, most = claim["paper"] if isinstance(claim["paper"], list) else (claim["paper"], claim["paper"])
    if most < 0:  # from here on the paper's direction is up
        least, most, low, high = -most, -least, -high, -low
    if low > 0:
        if high < least:
            return "agrees, smaller"
        return "agrees, larger" if most < low else "agrees"
    return "differs" if high < least else "open: interval too wide"


def judge(claim, folder, level):
    """Return the verdict on a claim, and our figure as it is printed."""
    if "open" in claim:
        return f"open: {claim['open']}", ""
    if "value" in claim:
        return verdict(claim, claim["value"], claim["value"]), f"{claim['value']:,}"
    line = read_figure(claim, folder)
    if line is None:
        return f"open: {FEW[1] if 'note' in claim else 'not trained yet'}", ""
    if "figure" in claim:
        figure, kind = claim["figure"], f".{claim.get('digits', 3)}f"
    else:
        figure, kind = "difference", f"+.{claim.get('digits', 2)}f"
    shown = f"{float(line[figure]):{kind}}"
    if int(line["seeds"]) in FEW:
        return f"open: {FEW[int(line['seeds'])]}", shown
    low, high = interval(claim, line, level)
    return verdict(claim, low, high), f"{shown} ({low:{kind}} to {high:{kind}})".replace("-", "−")


def count_intervals(papers, folder):
    """Count the claims that have enough seeds."""
    claims = (claim for of_paper in papers.values() for claim in of_paper if "table" in claim)
    lines = filter(None, (read_figure(claim, folder) for claim in claims))
    return sum(int(line["seeds"]) not in FEW for line in lines)


def table(folder):
    """Return the lines of the table."""
    papers = read_claims()
    level = 0.05 / count_intervals(papers, folder)
    lines = ["| claim | verdict | here |", "|---|---|---|"]
    for paper, claims in papers.items():
        lines.append(f"| **{paper}** |")
        for claim in claims:
            found, figure = judge(claim, folder, level)
            here = "; ".join(filter(None, [figure, claim.get("note")]))
            cells = [f"{claim['claim']}, {claim['place']}", found, here]
            lines.append("| " + " | ".join(filter(None, cells)) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS, help="the folder of the tables (results)")
    print("\n".join(table(parser.parse_args().folder)))


if __name__ == "__main__":
    main()
