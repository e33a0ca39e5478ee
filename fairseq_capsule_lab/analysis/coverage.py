"""How much of the source a translation covers, measured by word alignments (Zheng et al. 2019, Table 3)."""

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Iterable, List, NamedTuple, Sequence, Tuple

from tqdm import tqdm

from capsule_routing.errors import UserError
from fairseq_capsule_lab.analysis.alignment import Links, align, grow_diag_final_and, without_links
from fairseq_capsule_lab.analysis.charts import points
from fairseq_capsule_lab.analysis.lengths import word_counts
from fairseq_capsule_lab.analysis.output import Analysis, column, make_analysis
from fairseq_capsule_lab.evaluation.translations import Translations

Corpus = Tuple[Sequence[str], Sequence[str]]


class CoverageRates(NamedTuple):
    """The rates of one text. `C` is the set of source words that have a link.

    Attributes:
        cdr: the coverage difference ratio `1 − |C_ref \\ C_gen| / |C_ref|` (Kong et al. 2019).
        under: under-translation, the words of `C_ref \\ C_gen` in percent of all source words.
        over: over-translation, the words with more than one link to the translation and with more links to it than to
            the reference, in percent of all source words.
    """

    cdr: float
    under: float
    over: float


@dataclass(frozen=True)
class CoverageRow:
    """Means over alignments. `…_spread` is the largest distance of one alignment's value from the mean."""

    system: str = column("system")
    cdr: float = column("CDR", digits=4)
    cdr_spread: float = column("±", digits=4)
    under: float = column("under-translated, %")
    under_spread: float = column("±")
    over: float = column("over-translated, %")
    over_spread: float = column("±")


def coverage_rates(words: Sequence[int], reference: Iterable[Links], translation: Iterable[Links]) -> CoverageRates:
    """The rates of a text. Words are counted over all sentences, so long sentences have more weight.

    Args:
        words: the number of words of each source sentence.
        reference, translation: for each sentence, the links from its source; a UserError if no reference has one.
    """
    covered = missed = repeated = 0
    for to_reference, to_translation in zip(reference, translation):
        expected = Counter(source for source, _ in to_reference)
        links = Counter(source for source, _ in to_translation)
        covered += len(expected)
        missed += len(expected.keys() - links.keys())
        repeated += sum(number > max(1, expected[source]) for source, number in links.items())
    if not covered:
        raise UserError(
            "no source word could be aligned with the references; give more text to learn from "
            "(`analyze coverage --train`)"
        )
    return CoverageRates(1 - missed / covered, 100 * missed / sum(words), 100 * repeated / sum(words))


def aligned_rates(outputs: Sequence[Translations], training: Corpus = ((), ())) -> List[CoverageRates]:
    """The rates of every output of a text. One alignment learns from the sources with the references and all outputs.

    `training` has more sentence pairs to learn from, with the same tokenisation.
    """
    sources, count = outputs[0].sources, len(outputs[0].sentences)
    texts = [outputs[0].targets, *(output.sentences for output in outputs)]
    forward, backward = align(
        [*training[0], *sources * len(texts)], [*training[1], *(line for text in texts for line in text)]
    )
    known = len(training[0])
    links = [grow_diag_final_and(*both) for both in zip(forward[known:], backward[known:])]
    reference, *translations = (links[start : start + count] for start in range(0, len(links), count))
    words = word_counts(sources)
    return [coverage_rates(words, reference, translation) for translation in translations]


def analyze_coverage(
    names: Sequence[str], outputs: Sequence[Translations], training: Corpus = ((), ()), runs: int = 3
) -> Analysis:
    """The rates of every output. Each rate is the mean over `runs` alignments, because eflomal samples alignments."""
    sampled = [aligned_rates(outputs, training) for _ in tqdm(range(runs), desc="align", disable=None)]
    rows = [
        CoverageRow(name, *(value for rates in zip(*rates_by_run) for value in _mean_and_spread(rates)))
        for name, rates_by_run in zip(names, zip(*sampled))
    ]
    labels = {"cdr": "CDR", "under": "under-translated source words, %", "over": "over-translated source words, %"}
    panels = {
        label: {row.system: (getattr(row, name), getattr(row, f"{name}_spread")) for row in rows}
        for name, label in labels.items()
    }
    pairs = f" and {len(training[0])} training pairs" if training[0] else ""
    text = (
        f"From alignments by eflomal (grow-diag-final-and) of {len(outputs[0].sentences)} sentences with their "
        f"references and with the translations of all systems{pairs}. CDR: 1 − |C_ref \\ C_gen| / |C_ref|, where C is "
        "the set of aligned source words. Under-translated: source words in C_ref and not in C_gen. Over-translated: "
        "source words with more links to the translation than to the reference, and more than one. Both in percent of "
        f"all source words. Means over {runs} {'alignments' if runs > 1 else 'alignment'}; ±: the largest distance of "
        "one alignment from the mean."
    )
    texts = [outputs[0].targets, *(output.sentences for output in outputs)]
    if note := without_links(outputs[0].sources * len(texts), [line for lines in texts for line in lines]):
        text += f" {note}."
    title = "Coverage of the source"
    return make_analysis("coverage", title, text, rows, points(panels, title))


def _mean_and_spread(values: Sequence[float]) -> Tuple[float, float]:
    centre = fmean(values)
    return centre, max(abs(value - centre) for value in values)
