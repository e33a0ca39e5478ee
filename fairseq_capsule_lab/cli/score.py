"""`fairseq-capsule score` and `seeds`: score translations or summaries, and compare systems.

`score` tests whether one output is better than another; `seeds` compares systems that were trained with several seeds.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import text_file, text_files
from fairseq_capsule_lab.cli.commands import argument, command, flag, note, option, together
from fairseq_capsule_lab.files import write_whole

if TYPE_CHECKING:
    from fairseq_capsule_lab.evaluation.scores import Measure, Score
    from fairseq_capsule_lab.evaluation.seeds import SeedScores
    from fairseq_capsule_lab.evaluation.translations import Translations

ROUGE = (
    "The texts are summaries, separate characters are joined: ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters instead "
    "of BLEU and chrF."
)
BASELINE = "The outputs of the baseline, one for each seed. Or a pattern in quotes, such as 'baseline-*/generate.out'."
SYSTEM = "The outputs of a system, in the order of the baseline's. May be repeated for further systems."


@dataclass(frozen=True)
class Scoring:
    """The arguments of SCORING."""

    references: Sequence[Path]
    lang: str | None
    rouge: bool
    lowercase: bool
    bleu_tokenizer: str | None
    other_reference: bool
    external: Sequence[str]
    tokenized: str
    remove_bpe: str | None

    def read(self, paths: Sequence[Path], least: int = 1) -> tuple[list["Translations"], list[list[str]]]:
        """Read translations, or with `--rouge` summaries, and the references; refuse what does not fit together."""
        from fairseq_capsule_lab.evaluation import translations

        if self.rouge and self.tokenized != "auto":
            raise UserError("--tokenized applies to BLEU, and ROUGE counts characters; leave it out with --rouge")
        kind = (False, "characters") if self.rouge else (translations.TOKENISED[self.tokenized],)
        systems = [translations.read_translations(path, self.remove_bpe, *kind) for path in paths]
        references = [(path, read_lines(path)) for path in self.references]
        translations.require_equal_counts(systems, references)
        if len(references[0][1]) < least:
            raise UserError(f"{self.references[0]}: one sentence; the variation between sentences needs at least two")
        if not self.other_reference:
            translations.require_own_reference(systems, references)
        return systems, [lines for _, lines in references]

    def measures(self, systems: list["Translations"], references: list[list[str]]) -> Iterable["Measure"]:
        """BLEU and chrF, or with `--rouge` ROUGE; then the external measures."""
        from fairseq_capsule_lab.evaluation import scores
        from fairseq_capsule_lab.evaluation.external import external_measures

        external = external_measures(self.external, systems)
        if self.rouge:
            return chain(scores.rouge_measures(systems, references, self.lowercase), external)
        options = (self.lowercase, self.other_reference, self.bleu_tokenizer)
        own = scores.measures(systems, references, self.language(), *options)
        return chain(own, external)

    def language(self) -> str:
        return self.lang or arguments.language_of(self.references[0])


def _gathered(function: Any) -> Any:
    """Call a command with its arguments of SCORING as `scoring`."""

    @functools.wraps(function)
    def called(**given: Any) -> Any:
        scoring = Scoring(**{field.name: given.pop(field.name) for field in fields(Scoring)})
        return function(scoring=scoring, **given)

    return called


SCORING = together(
    argument("references", text_file, "The references, untokenised; several are used together.", "REF", many=True),
    option("--lang", arguments.language_code, "LANG", "Language of the translations.  [default: the suffix of REF]"),
    flag("--rouge", ROUGE),
    arguments.LOWERCASE,
    arguments.BLEU_TOKENIZER,
    flag("--other-reference", "Accept a REF that is another text than the T- lines of an output."),
    arguments.EXTERNAL,
    arguments.TEXT,
    arguments.JSON,
    _gathered,
)


@command("score", "runs/capsule/evaluation/test/generate.out data/multi30k/raw/test.de")
@argument("hypothesis", text_file, "An output of fairseq-generate, or plain text.", "HYP")
@SCORING
@option("--against", text_file, "OTHER", "Another HYP to compare with by a paired bootstrap for each measure.")
@arguments.BOOTSTRAP
@option("--output", arguments.output_path, "FILE", "Write the detokenised translations to FILE.")
def score(
    scoring: Scoring,
    hypothesis: Path,
    against: Path | None,
    samples: int,
    seed: int,
    output: Path | None,
) -> dict[str, Any]:
    """Compute BLEU and chrF of translations, or ROUGE of summaries, each with its label and signature."""
    from tqdm import tqdm

    from fairseq_capsule_lab.evaluation import scores, translations

    systems, texts = scoring.read([hypothesis, against] if against else [hypothesis])
    for doubt in translations.doubts(systems, texts, scoring.lowercase):
        note(doubt)
    measures = scoring.measures(systems, texts)
    if output:
        first = systems[0]
        plain = first.sentences if scoring.rouge else scores.plain_sentences(first, scoring.language())
        write_whole(output, "".join(sentence + "\n" for sentence in plain).encode())
    reported = {}
    for measure in tqdm(measures, desc="score", unit=" measures", disable=None):
        score = scores.evaluate(measure, samples, seed)
        reported[score.name] = asdict(score)
        tqdm.write(_described(score, hypothesis, against, measure.digits))
    return {
        "hypothesis": str(hypothesis),
        "references": [str(path) for path in scoring.references],
        "against": str(against) if against else None,
        "tokenized": scoring.tokenized,
        "bleu_tokenizer": scoring.bleu_tokenizer,
        "remove_bpe": scoring.remove_bpe,
        "sentences": len(systems[0].sentences),
        "scores": reported,
    }


def _described(score: "Score", hypothesis: Path, other: Path | None, digits: int) -> str:
    report = f"{score.label} = {score.score:.{digits}f}  ({score.text})\n    {score.line}"
    against = score.against
    if against and other:
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


@command("seeds", "raw/test.de --baseline 'transformer-*/generate.out' --system 'capsule-*/generate.out'")
@SCORING
@option("--baseline", text_files, "OUT:OUT:…", BASELINE, required=True)
@option("--system", text_files, "OUT:OUT:…", SYSTEM, required=True, multiple=True)
def seeds(
    scoring: Scoring,
    baseline: list[Path],
    system: Sequence[list[Path]],
) -> dict[str, Any]:
    """Compare systems that were trained with several seeds: intervals and p over seeds and sentences."""
    from tqdm import tqdm

    from fairseq_capsule_lab.evaluation.seeds import compare_seeds

    _require_seeds(baseline, system)
    seeds = len(baseline)
    if _distinct(baseline) != seeds:
        text = "the baseline has fewer outputs than seeds; the intervals do not cover the variation of its training"
        note(text)
    groups = [baseline, *system]
    outputs, texts = scoring.read([path for group in groups for path in group], least=2)
    reported: dict[str, list[dict[str, Any]]] = {}
    for measure in tqdm(scoring.measures(outputs, texts), desc="seeds", unit=" measures", disable=None):
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
    paths = [str(path) for path in scoring.references]
    return {"references": paths, "sentences": len(texts[0]), "scores": reported}


def _require_seeds(baseline: Sequence[Path], systems: Sequence[Sequence[Path]]) -> None:
    seeds = len(baseline)
    if seeds < 2:
        raise UserError("--baseline: one output; give one for each seed, as OUT:OUT or by a pattern in quotes")
    for group in systems:
        if len(group) != seeds:
            problem = f"{len(group)} outputs, but the baseline has {seeds}"
            raise UserError(f"--system {group[0]}: {problem}; give one for each seed")
        if _distinct(group) != seeds:
            raise UserError(f"--system {group[0]}: an output occurs twice; give the output of another seed for each")


def _distinct(outputs: Sequence[Path]) -> int:
    return len({path.resolve() for path in outputs})


def _line(first: Path, of_group: "SeedScores", digits: int) -> str:
    line = f"    {of_group.mean:.{digits}f} ± {of_group.deviation:.{digits}f}"
    if effect := of_group.effect:
        line += f", {effect.difference:+.{digits}f} ({effect.low:+.{digits}f} to {effect.high:+.{digits}f})"
        line += f", p = {effect.p_adjusted:.4f}, detectable {effect.detectable:.{digits}f}"
    return f"{line}  {first}"
