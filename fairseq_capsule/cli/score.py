"""`fairseq-capsule score`: score translations or summaries, and test whether another output is better."""

import argparse
import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List

from tqdm import tqdm

from fairseq_capsule.cli.arguments import (
    MOST_SEED,
    SUBWORDS,
    input_file,
    language_code,
    language_of,
    output_file,
    whole_number,
)
from fairseq_capsule.data.files import read_lines, write_whole
from fairseq_capsule.errors import UserError
from fairseq_capsule.evaluation import scoring
from fairseq_capsule.evaluation.summary_scores import rouge_measures
from fairseq_capsule.evaluation.translations import read_translations

MOST_SAMPLES = 100_000


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
    parser.add_argument(
        "--lang", type=language_code, help="language of the translations, for Moses (default: the suffix of REF)"
    )
    parser.add_argument(
        "--rouge",
        action="store_true",
        help="the texts are summaries: ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters instead of BLEU and chrF",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument(
        "--against",
        type=input_file,
        metavar="OTHER",
        help="another HYP to compare with by a paired bootstrap for each measure",
    )
    parser.add_argument(
        "--samples",
        type=whole_number(1, MOST_SAMPLES),
        default=1000,
        help="samples of the paired bootstrap (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(1, MOST_SEED),
        default=12345,
        help="seed of the paired bootstrap (default: %(default)s, as in sacrebleu)",
    )
    parser.add_argument(
        "--tokenized",
        choices=["auto", "yes", "no"],
        default="auto",
        help="whether HYP is tokenised; auto (the default): yes for an output of fairseq-generate, unless it was "
        "generated with --tokenizer or consists of SentencePiece pieces; no for plain text",
    )
    parser.add_argument(
        "--remove-bpe",
        choices=SUBWORDS,
        help="how to join subwords (default: none for plain text; for an output of fairseq-generate sentencepiece if "
        "it has such pieces, otherwise subword_nmt, or with --rouge separate characters)",
    )
    parser.add_argument(
        "--other-reference",
        action="store_true",
        help="accept a REF that is another text than the T- lines of HYP",
    )
    parser.add_argument("--output", type=output_file, metavar="FILE", help="write the detokenised translations to FILE")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run(args: argparse.Namespace) -> None:
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # the import of fairseq makes all libraries print notes
    if args.rouge and args.tokenized != "auto":
        raise UserError("--tokenized applies to BLEU, and ROUGE counts characters; leave it out with --rouge")
    tokenised = False if args.rouge else {"auto": None, "yes": True, "no": False}[args.tokenized]
    paths = [args.hypothesis, *([args.against] if args.against else [])]
    generated = "characters" if args.rouge else "subword_nmt"
    systems = [read_translations(path, args.remove_bpe, tokenised, generated) for path in paths]
    references = [read_lines(path) for path in args.references]
    scoring.require_equal_counts(systems, list(zip(args.references, references)))
    if not args.other_reference:
        scoring.require_own_reference(systems, list(zip(args.references, references)))
    for doubt in scoring.doubts(systems, references, args.lowercase):
        print(f"fairseq-capsule score: note: {doubt}", file=sys.stderr)

    if args.rouge:
        sentences = systems[0].sentences
        measures = rouge_measures(systems, references, args.lowercase)
    else:
        language = args.lang or language_of(args.references[0])
        sentences = scoring.detokenised(systems[0], scoring.Moses(language))
        measures = scoring.measures(systems, references, language, args.lowercase)
    if args.output:
        write_whole(args.output, "".join(sentence + "\n" for sentence in sentences).encode())
    scores = []
    for measure in tqdm(measures, desc="score", unit=" measures", disable=None):
        score = scoring.evaluate(measure, args.samples, args.seed)
        scores.append(score)
        tqdm.write(_report(score, args.against))
    if args.json:
        print(json.dumps(_as_json(args, len(systems[0].sentences), scores)))


def _report(score: scoring.Score, other: Path) -> str:
    lines = [f"{score.label} = {score.score:.2f}  ({score.text})", f"    {score.line}"]
    if score.against:
        against = score.against
        p = "nothing to test" if against.p is None else f"p = {against.p:.4f}"
        lines.append(
            f"    {score.score:.2f} - {against.score:.2f} of {other} = {against.difference:+.2f}, {p} "
            f"(paired bootstrap, {against.samples} samples, seed {against.seed})"
        )
    return "\n".join(lines)


def _as_json(args: argparse.Namespace, sentences: int, scores: List[scoring.Score]) -> Dict[str, Any]:
    return {
        "hypothesis": str(args.hypothesis),
        "references": [str(path) for path in args.references],
        "against": str(args.against) if args.against else None,
        "sentences": sentences,
        "scores": {score.name: asdict(score) for score in scores},
    }
