"""The sentences that two systems translate most differently, side by side (Weng et al. 2020, Fig. 6)."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import fmean
from typing import List, Sequence, Tuple

from sacrebleu.metrics import CHRF
from tqdm import tqdm

from fairseq_capsule_lab.analysis.charts import histogram
from fairseq_capsule_lab.analysis.output import Analysis, column, escaped
from fairseq_capsule_lab.evaluation.translations import Translations


@dataclass(frozen=True)
class Case:
    """One sentence of two systems. `difference` is the second system's score minus the first system's."""

    sentence: int = column("sentence")
    difference: float = column("difference")
    first_score: float = column("first")
    second_score: float = column("second")
    source: str = column("source")
    reference: str = column("reference")
    first: str = column("first system")
    second: str = column("second system")


def compare(first: Translations, second: Translations, lowercase: bool = False) -> List[Case]:
    """Score every sentence of two outputs for the same text, in its order, by chrF against the T- lines."""
    score = CHRF(lowercase=lowercase).sentence_score
    texts = list(zip(first.sources, first.targets, first.sentences, second.sentences))
    cases = []
    for sentence, (source, target, *outputs) in enumerate(tqdm(texts, desc="cases", delay=2, disable=None)):
        before, after = (score(output, [target]).score for output in outputs)
        cases.append(Case(sentence, after - before, before, after, source, target, *outputs))
    return cases


def most_different(cases: Sequence[Case], count: int) -> Tuple[List[Case], List[Case]]:
    """The `count` largest gains and the `count` largest losses, largest first, without cases of equal scores."""
    ordered = sorted(cases, key=lambda case: (-case.difference, case.sentence))
    gains = [case for case in ordered[:count] if case.difference > 0]
    losses = [case for case in ordered[::-1][:count] if case.difference < 0]
    return gains, losses


def mark(text: str, other: str) -> str:
    """Text in Markdown. Bold marks words that `other` does not have in that place."""
    words, other_words = text.split(), other.split()
    parts = []
    for kind, start, end, _, _ in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes():
        if start < end:
            part = escaped(" ".join(words[start:end]))
            parts.append(part if kind == "equal" else f"**{part}**")
    return " ".join(parts)


def analyze_cases(names: Sequence[str], cases: Sequence[Case], count: int) -> Analysis:
    """An analysis: the cases side by side in Markdown, all sentences as a table, the differences as a histogram."""
    gains, losses = most_different(cases, count)
    mean = fmean(case.difference for case in cases)
    better, worse = (sum(sign * case.difference > 0 for case in cases) for sign in (1, -1))
    first, second = (escaped(name) for name in names)
    sections = [
        f"# {second} against {first}\n\nMeasured by chrF of each sentence, with the words of the outputs and of "
        f"their T- lines. {second} is better in {better} of {len(cases)} sentences and worse in {worse}. The mean "
        f"difference is {mean:+.2f}. Bold: words that only one of the two has.\n"
    ]
    for title, most in (("gains", gains), ("loses", losses)):
        if most:
            sections.append(f"## Where {second} {title} most\n")
            sections += [_side_by_side(case, first, second) for case in most]
    figure = histogram(
        [case.difference for case in cases if case.difference],
        f"chrF: {names[1]} − {names[0]}",
        f"The {better + worse} of {len(cases)} sentences with a difference",
    )
    return Analysis("cases", "\n".join(sections), cases, figure)


def _side_by_side(case: Case, first: str, second: str) -> str:
    rows = [
        ("source", escaped(case.source)),
        ("reference", escaped(case.reference)),
        (f"{first}, {case.first_score:.1f}", mark(case.first, case.second)),
        (f"{second}, {case.second_score:.1f}", mark(case.second, case.first)),
    ]
    table = "".join(f"| {label} | {text} |\n" for label, text in rows)
    return f"| sentence {case.sentence} | {case.difference:+.1f} |\n|---|---|\n{table}"
