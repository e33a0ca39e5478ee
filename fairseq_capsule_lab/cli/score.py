"""`fairseq-capsule score` and `seeds`: score translations or summaries, and compare systems.

`score` tests whether one output is better than another; `seeds` compares systems that were trained with several seeds.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from fairseq_capsule.data.files import read_lines
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import input_file
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation import translations
from fairseq_capsule_lab.evaluation.external import external_measures
from fairseq_capsule_lab.evaluation.scores import (
    Measure,
    Moses,
    Score,
    evaluate,
    measures,
    plain_sentences,
    rouge_measures,
)
from fairseq_capsule_lab.evaluation.seeds import SeedScores, compare_seeds
from fairseq_capsule_lab.evaluation.translations import TOKENISED, Translations, read_translations
from fairseq_capsule_lab.files import write_whole


def add_score_arguments(parser: ArgumentParser) -> None:
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
    _add_scoring(parser)
    parser.add_argument(
        "--against",
        type=input_file,
        metavar="OTHER",
        help="another HYP to compare with by a paired bootstrap for each measure",
    )
    arguments.add_bootstrap(parser)
    parser.add_argument(
        "--output", type=arguments.output_file, metavar="FILE", help="write the detokenised translations to FILE"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run_score(args: Namespace) -> None:
    systems, references = _read(args, [args.hypothesis, *([args.against] if args.against else [])])
    lines = [reference for _, reference in references]
    for doubt in translations.doubts(systems, lines, args.lowercase):
        arguments.note(args, doubt)

    measures = _measures(args, systems, lines)
    if args.output:
        first = systems[0]
        sentences = first.sentences if args.rouge else plain_sentences(first, Moses(_language(args)))
        write_whole(args.output, "".join(sentence + "\n" for sentence in sentences).encode())
    scores = []
    for measure in tqdm(measures, desc="score", unit=" measures", disable=None):
        score = evaluate(measure, args.samples, args.seed)
        scores.append(score)
        tqdm.write(_report(score, args.against, measure.digits))
    if args.json:
        described = {
            "hypothesis": str(args.hypothesis),
            "references": [str(path) for path in args.references],
            "against": str(args.against) if args.against else None,
            "tokenized": args.tokenized,
            "remove_bpe": args.remove_bpe,
            "sentences": len(systems[0].sentences),
            "scores": {score.name: asdict(score) for score in scores},
        }
        print(json.dumps(described))


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


def add_seeds_arguments(parser: ArgumentParser) -> None:
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
    _add_scoring(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")


def run_seeds(args: Namespace) -> None:
    groups: list[list[Path]] = [args.baseline, *args.system]
    seeds = len(args.baseline)
    _require_seeds(args)
    if _distinct(args.baseline) != seeds:
        text = "the baseline has fewer outputs than seeds; the intervals do not cover the variation of its training"
        arguments.note(args, text)
    outputs, references = _read(args, [path for group in groups for path in group], least_sentences=2)
    measures = _measures(args, outputs, [lines for _, lines in references])
    scores: dict[str, list[SeedScores]] = {}
    for measure in tqdm(measures, desc="seeds", unit=" measures", disable=None):
        scores[measure.name] = compare_seeds(measure, seeds)
        tqdm.write(f"{measure.label}  ({measure.text}; {measure.metric.get_signature()})")
        for group, of_group in zip(groups, scores[measure.name]):
            tqdm.write(_line(group[0], of_group, measure.digits))
    tqdm.write(
        f"Means of {seeds} seeds ± standard deviation; the difference to the baseline with its 95% interval, over "
        "seeds and sentences; p after Holm's correction; the smallest difference that this test would detect at 5%, "
        "without correction, in 80% of such comparisons."
    )
    if args.json:
        described = {
            "references": [str(path) for path in args.references],
            "sentences": len(references[0][1]),
            "scores": {
                name: [{"outputs": [str(path) for path in group], **asdict(row)} for group, row in zip(groups, rows)]
                for name, rows in scores.items()
            },
        }
        print(json.dumps(described))


def _require_seeds(args: Namespace) -> None:
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


def _distinct(outputs: Sequence[Path]) -> int:
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


def _add_scoring(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--lang",
        type=arguments.language_code,
        help="language of the translations, for Moses (default: the suffix of REF)",
    )
    parser.add_argument(
        "--rouge",
        action="store_true",
        help="the texts are summaries, separate characters are joined: ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters "
        "instead of BLEU and chrF",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument(
        "--other-reference",
        action="store_true",
        help="accept a REF that is another text than the T- lines of an output",
    )
    arguments.add_external(parser)
    arguments.add_text(parser)


def _read(
    args: Namespace, paths: Sequence[Path], least_sentences: int = 1
) -> tuple[list[Translations], list[tuple[Path, list[str]]]]:
    """Read translations, or with `--rouge` summaries, and the references.

    Raises:
        LabError: the errors of `read_translations`; `--tokenized` together with `--rouge`; too few sentences; the
            counts differ, or the references are another text, without `--other-reference`.
    """
    if args.rouge and args.tokenized != "auto":
        raise LabError("--tokenized applies to BLEU, and ROUGE counts characters; leave it out with --rouge")
    kind = (False, "characters") if args.rouge else (TOKENISED[args.tokenized],)
    systems = [read_translations(path, args.remove_bpe, *kind) for path in paths]
    references = [(path, read_lines(path)) for path in args.references]
    translations.require_equal_counts(systems, references)
    if len(references[0][1]) < least_sentences:
        raise LabError(f"{args.references[0]}: one sentence; the variation between sentences needs at least two")
    if not args.other_reference:
        translations.require_own_reference(systems, references)
    return systems, references


def _measures(
    args: Namespace, systems: Sequence[Translations], references: Sequence[Sequence[str]]
) -> Iterable[Measure]:
    """BLEU and chrF, or with `--rouge` ROUGE; then the external measures."""
    external = external_measures(args.external, systems)
    if args.rouge:
        return chain(rouge_measures(systems, references, args.lowercase), external)
    return chain(measures(systems, references, _language(args), args.lowercase), external)


def _language(args: Namespace) -> str:
    return args.lang or arguments.language_of(args.references[0])
