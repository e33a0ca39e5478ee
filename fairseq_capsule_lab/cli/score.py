"""`fairseq-capsule score` and `seeds`: score translations or summaries, and compare systems.

`score` tests whether one output is better than another; `seeds` compares systems that were trained with several seeds.
"""

import json
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capsule_routing.text.files import read_lines
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import input_file
from fairseq_capsule_lab.cli.commands import Several, argument, command, flag, note, option, together
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import write_whole

if TYPE_CHECKING:
    from fairseq_capsule_lab.evaluation.scores import Measure, Score
    from fairseq_capsule_lab.evaluation.seeds import SeedScores
    from fairseq_capsule_lab.evaluation.translations import Translations

ROUGE = (
    "The texts are summaries, separate characters are joined: ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters instead "
    "of BLEU and chrF."
)
SYSTEM = "The outputs of a system, in the order of the baseline's. May be repeated for further systems."
SCORING = together(
    argument("references", input_file, "The references, untokenised; several are used together.", "REF", many=True),
    option("--lang", arguments.language_code, "LANG", "Language of the translations.  [default: the suffix of REF]"),
    flag("--rouge", ROUGE),
    arguments.LOWERCASE,
    flag("--other-reference", "Accept a REF that is another text than the T- lines of an output."),
    arguments.EXTERNAL,
    arguments.TEXT,
    arguments.JSON,
)


@command("score", "runs/capsule/evaluation/test/generate.out data/multi30k/raw/test.de")
@argument("hypothesis", input_file, "An output of fairseq-generate, or plain text.", "HYP")
@SCORING
@option("--against", input_file, "OTHER", "Another HYP to compare with by a paired bootstrap for each measure.")
@arguments.BOOTSTRAP
@option("--output", arguments.output_path, "FILE", "Write the detokenised translations to FILE.")
def score(args: Namespace) -> None:
    """Compute BLEU and chrF of translations, or ROUGE of summaries, each with its label and signature."""
    from tqdm import tqdm

    from fairseq_capsule_lab.evaluation import scores, translations

    systems, references = _read(args, [args.hypothesis, *([args.against] if args.against else [])])
    for doubt in translations.doubts(systems, references, args.lowercase):
        note(doubt)
    measures = _measures(args, systems, references)
    if args.output:
        first = systems[0]
        plain = first.sentences if args.rouge else scores.plain_sentences(first, _language(args))
        write_whole(args.output, "".join(sentence + "\n" for sentence in plain).encode())
    reported = {}
    for measure in tqdm(measures, desc="score", unit=" measures", disable=None):
        score = scores.evaluate(measure, args.samples, args.seed)
        reported[score.name] = asdict(score)
        tqdm.write(_report(score, args.hypothesis, args.against, measure.digits))
    report = {
        "hypothesis": str(args.hypothesis),
        "references": [str(path) for path in args.references],
        "against": str(args.against) if args.against else None,
        "tokenized": args.tokenized,
        "remove_bpe": args.remove_bpe,
        "sentences": len(systems[0].sentences),
        "scores": reported,
    }
    if args.json:
        print(json.dumps(report))


def _report(score: "Score", hypothesis: Path, other: Path, digits: int) -> str:
    report = f"{score.label} = {score.score:.{digits}f}  ({score.text})\n    {score.line}"
    if against := score.against:
        if against.difference and not round(against.difference, digits):
            digits = 4
        smallest = 1 / (against.samples + 1)  # the p of sacrebleu if no sample contradicts
        p = "nothing to test" if against.p is None else f"p = {against.p:.4f}"
        if against.p is not None and against.p <= smallest:
            p = f"p ≤ {smallest:.1g}"
        test = f"{p} (paired bootstrap, {against.samples} samples, seed {against.seed})"
        name, of_other = _names(hypothesis, other)
        difference = f"{score.score:.{digits}f} of {name} - {against.score:.{digits}f} of {of_other} = "
        report += f"\n    {difference}{against.difference:+.{digits}f}, {test}"
    return report


def _names(hypothesis: Path, other: Path) -> tuple[str, str]:
    """Names of two outputs: of their run folders (RUN/RESULTS/SPLIT/generate.out), if they are equal their paths."""
    paths = [path.resolve() for path in (hypothesis, other)]
    name, of_other = (path.parents[2].name if path.name == "generate.out" else path.name for path in paths)
    return (name, of_other) if name != of_other else (str(hypothesis), str(other))


@command("seeds", "raw/test.de --baseline transformer-*/generate.out --system capsule-*/generate.out")
@SCORING
@option("--baseline", Several(input_file), "OUT...", "The outputs of the baseline, one for each seed.", required=True)
@option("--system", Several(input_file), "OUT...", SYSTEM, required=True, multiple=True)
def seeds(args: Namespace) -> None:
    """Compare systems that were trained with several seeds: intervals and p over seeds and sentences."""
    from tqdm import tqdm

    from fairseq_capsule_lab.evaluation.seeds import compare_seeds

    groups: list[list[Path]] = [args.baseline, *args.system]
    seeds = len(args.baseline)
    _require_seeds(args)
    if _distinct(args.baseline) != seeds:
        text = "the baseline has fewer outputs than seeds; the intervals do not cover the variation of its training"
        note(text)
    outputs, references = _read(args, [path for group in groups for path in group], least=2)
    reported: dict[str, list[dict[str, Any]]] = {}
    for measure in tqdm(_measures(args, outputs, references), desc="seeds", unit=" measures", disable=None):
        compared = compare_seeds(measure, seeds)  # sacrebleu has no signature before
        tqdm.write(f"{measure.label}  ({measure.text}; {measure.metric.get_signature()})")
        reported[measure.name] = []
        for group, of_group in zip(groups, compared):
            tqdm.write(_line(group[0], of_group, measure.digits))
            reported[measure.name].append({"outputs": [str(path) for path in group], **asdict(of_group)})
    tqdm.write(
        f"Means of {seeds} seeds ± standard deviation; the difference to the baseline with its 95% interval, over "
        "seeds and sentences; p after Holm's correction; the smallest difference that this test would detect at 5%, "
        "without correction, in 80% of such comparisons."
    )
    if args.json:
        paths = [str(path) for path in args.references]
        print(json.dumps({"references": paths, "sentences": len(references[0]), "scores": reported}))


def _require_seeds(args: Namespace) -> None:
    seeds = len(args.baseline)
    if seeds < 2:
        raise LabError("--baseline: one output; the variation between seeds needs the outputs of at least two")
    for group in args.system:
        if len(group) != seeds:
            problem = f"{len(group)} outputs, but the baseline has {seeds}"
            raise LabError(f"--system {group[0]}: {problem}; give one for each seed")
        if _distinct(group) != seeds:
            raise LabError(f"--system {group[0]}: an output occurs twice; give the output of another seed for each")


def _distinct(outputs: Sequence[Path]) -> int:
    return len({path.resolve() for path in outputs})


def _line(first: Path, of_group: "SeedScores", digits: int) -> str:
    line = f"    {of_group.mean:.{digits}f} ± {of_group.deviation:.{digits}f}"
    if effect := of_group.effect:
        line += f", {effect.difference:+.{digits}f} ({effect.low:+.{digits}f} to {effect.high:+.{digits}f})"
        line += f", p = {effect.p_adjusted:.4f}, detectable {effect.detectable:.{digits}f}"
    return f"{line}  {first}"


def _read(args: Namespace, paths: Sequence[Path], least: int = 1) -> tuple[list["Translations"], list[list[str]]]:
    """Read translations, or with `--rouge` summaries, and the references; refuse what does not fit together."""
    from fairseq_capsule_lab.evaluation import translations

    if args.rouge and args.tokenized != "auto":
        raise LabError("--tokenized applies to BLEU, and ROUGE counts characters; leave it out with --rouge")
    kind = (False, "characters") if args.rouge else (translations.TOKENISED[args.tokenized],)
    systems = [translations.read_translations(path, args.remove_bpe, *kind) for path in paths]
    references = [(path, read_lines(path)) for path in args.references]
    translations.require_equal_counts(systems, references)
    if len(references[0][1]) < least:
        raise LabError(f"{args.references[0]}: one sentence; the variation between sentences needs at least two")
    if not args.other_reference:
        translations.require_own_reference(systems, references)
    return systems, [lines for _, lines in references]


def _measures(args: Namespace, systems: list["Translations"], references: list[list[str]]) -> Iterable["Measure"]:
    """BLEU and chrF, or with `--rouge` ROUGE; then the external measures."""
    from fairseq_capsule_lab.evaluation import scores
    from fairseq_capsule_lab.evaluation.external import external_measures

    external = external_measures(args.external, systems)
    if args.rouge:
        return chain(scores.rouge_measures(systems, references, args.lowercase), external)
    own = scores.measures(systems, references, _language(args), args.lowercase, args.other_reference)
    return chain(own, external)


def _language(args: Namespace) -> str:
    return args.lang or arguments.language_of(args.references[0])
