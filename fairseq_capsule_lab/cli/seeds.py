"""`fairseq-capsule seeds`: compare systems that were trained with several seeds."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Dict, List

from tqdm import tqdm

from fairseq_capsule.data.files import read_lines
from fairseq_capsule_lab.cli.arguments import input_file
from fairseq_capsule_lab.cli.scoring_arguments import add_scoring, measures_of, read_scored, require_own_reference
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation import translations
from fairseq_capsule_lab.evaluation.seeds import SeedScores, compare_seeds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("references", nargs="+", type=input_file, metavar="REF", help="the references, untokenised")
    parser.add_argument(
        "--baseline",
        nargs="+",
        required=True,
        type=input_file,
        metavar="OUT",
        help="the outputs of the baseline, one for each seed",
    )
    parser.add_argument(
        "--system",
        nargs="+",
        action="append",
        required=True,
        type=input_file,
        metavar="OUT",
        help="the outputs of a system, in the order of the baseline's; give it again for each further system",
    )
    add_scoring(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    groups: List[List[Path]] = [args.baseline, *args.system]
    seeds = len(args.baseline)
    if seeds < 2:
        raise LabError("--baseline: one output; the variation between seeds needs the outputs of at least two")
    for group in args.system:
        if len(group) != seeds:
            raise LabError(
                f"--system {group[0]}: {len(group)} outputs, but the baseline has {seeds}; give one for each seed"
            )
        if _distinct(group) != seeds:
            raise LabError(f"--system {group[0]}: an output occurs twice; give the output of another seed for each")
    if _distinct(args.baseline) != seeds:
        note = "the baseline has fewer outputs than seeds; the intervals do not cover the variation of its training"
        print(f"fairseq-capsule seeds: note: {note}", file=sys.stderr)
    outputs = read_scored(args, (path for group in groups for path in group))
    references = [(path, read_lines(path)) for path in args.references]
    translations.require_equal_counts(outputs, references)
    first, sentences = args.references[0], len(references[0][1])
    if sentences < 2:
        raise LabError(f"{first}: one sentence; the variation between sentences needs at least two")
    require_own_reference(args, outputs, references)
    measures = measures_of(args, outputs, [lines for _, lines in references])
    found: Dict[str, List[SeedScores]] = {}
    for measure in tqdm(measures, desc="seeds", unit=" measures", disable=None):
        found[measure.name] = compare_seeds(measure, seeds)
        tqdm.write(f"{measure.label}  ({measure.text}; {measure.metric.get_signature()})")
        for group, scores in zip(groups, found[measure.name]):
            tqdm.write(_line(group[0], scores, measure.digits))
    tqdm.write(
        f"Means of {seeds} seeds ± standard deviation; the difference to the baseline with its 95% interval, over "
        "seeds and sentences; p after Holm's correction; the smallest difference that this test would detect at 5%, "
        "without correction, in 80% of such comparisons."
    )
    if args.json:
        printed = {
            name: [{"outputs": [str(path) for path in group], **asdict(each)} for group, each in zip(groups, measured)]
            for name, measured in found.items()
        }
        names = [str(path) for path in args.references]
        print(json.dumps({"references": names, "sentences": sentences, "scores": printed}))


def _distinct(outputs: List[Path]) -> int:
    return len({path.resolve() for path in outputs})


def _line(first: Path, scores: SeedScores, digits: int) -> str:
    line = f"    {scores.mean:.{digits}f} ± {scores.deviation:.{digits}f}"
    if scores.effect:
        effect = scores.effect
        line += (
            f", {effect.difference:+.{digits}f} ({effect.low:+.{digits}f} to {effect.high:+.{digits}f}), "
            f"p = {effect.p_adjusted:.4f}, detectable {effect.detectable:.{digits}f}"
        )
    return f"{line}  {first}"
