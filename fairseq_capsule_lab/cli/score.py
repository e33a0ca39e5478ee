"""`fairseq-capsule score`: score translations or summaries, and test whether another output is better."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List

from tqdm import tqdm

from fairseq_capsule.data.files import read_lines
from fairseq_capsule_lab.cli.arguments import input_file, output_file
from fairseq_capsule_lab.cli.scoring_arguments import (
    add_bootstrap,
    add_scoring,
    language,
    measures_of,
    read_scored,
    require_own_reference,
)
from fairseq_capsule_lab.evaluation import translations
from fairseq_capsule_lab.evaluation.scores import Moses, Score, evaluate, plain_sentences
from fairseq_capsule_lab.files import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "hypothesis", type=input_file, metavar="HYP", help="an output of fairseq-generate, or plain text"
    )
    parser.add_argument(
        "references",
        nargs="+",
        type=input_file,
        metavar="REF",
        help="the reference, untokenised; several references are used together",
    )
    add_scoring(parser)
    parser.add_argument(
        "--against",
        type=input_file,
        metavar="OTHER",
        help="another HYP to compare with by a paired bootstrap for each measure",
    )
    add_bootstrap(parser)
    parser.add_argument("--output", type=output_file, metavar="FILE", help="write the detokenised translations to FILE")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    systems = read_scored(args, [args.hypothesis, *([args.against] if args.against else [])])
    references = [read_lines(path) for path in args.references]
    translations.require_equal_counts(systems, list(zip(args.references, references)))
    require_own_reference(args, systems, list(zip(args.references, references)))
    for doubt in translations.doubts(systems, references, args.lowercase):
        print(f"fairseq-capsule score: note: {doubt}", file=sys.stderr)

    measures = measures_of(args, systems, references)
    if args.output:
        sentences = systems[0].sentences if args.rouge else plain_sentences(systems[0], Moses(language(args)))
        write_whole(args.output, "".join(sentence + "\n" for sentence in sentences).encode())
    scores = []
    for measure in tqdm(measures, desc="score", unit=" measures", disable=None):
        score = evaluate(measure, args.samples, args.seed)
        scores.append(score)
        tqdm.write(_report(score, args.against, measure.digits))
    if args.json:
        print(json.dumps(_as_json(args, len(systems[0].sentences), scores)))


def _report(score: Score, other: Path, digits: int) -> str:
    lines = [f"{score.label} = {score.score:.{digits}f}  ({score.text})", f"    {score.line}"]
    if score.against:
        against = score.against
        p = "nothing to test" if against.p is None else f"p = {against.p:.4f}"
        lines.append(
            f"    {score.score:.{digits}f} - {against.score:.{digits}f} of {other} = "
            f"{against.difference:+.{digits}f}, {p} "
            f"(paired bootstrap, {against.samples} samples, seed {against.seed})"
        )
    return "\n".join(lines)


def _as_json(args: argparse.Namespace, sentences: int, scores: List[Score]) -> Dict[str, Any]:
    return {
        "hypothesis": str(args.hypothesis),
        "references": [str(path) for path in args.references],
        "against": str(args.against) if args.against else None,
        "tokenized": args.tokenized,
        "remove_bpe": args.remove_bpe,
        "sentences": sentences,
        "scores": {score.name: asdict(score) for score in scores},
    }
