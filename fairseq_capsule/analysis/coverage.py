"""How much of the source a translation covers, by word alignments (Zheng et al. 2019, Table 3)."""

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Iterable, List, NamedTuple, Sequence, Tuple

from tqdm import tqdm

from fairseq_capsule.analysis.alignment import Links, align, grow_diag_final_and
from fairseq_capsule.analysis.charts import points
from fairseq_capsule.analysis.lengths import word_counts
from fairseq_capsule.analysis.reports import Report, column, markdown_table
from fairseq_capsule.errors import UserError
from fairseq_capsule.evaluation.translations import Outputs

Corpus = Tuple[Sequence[str], Sequence[str]]


class Rates(NamedTuple):
    """Of one text, `C` being the source words that have a link.

    Attributes:
        cdr: the coverage difference ratio `1 − |C_ref \\ C_gen| / |C_ref|` (Kong et al. 2019).
        under: per cent of the source words that the reference covers and the translation does not: `C_ref \\ C_gen`.
        over: per cent of the source words that have more links to the translation than to the reference, and more than
            one.
    """

    cdr: float
    under: float
    over: float


@dataclass(frozen=True)
class CoverageRow:
    """Means over alignments; each `…_spread` is how far an alignment lay from the mean at most."""

    system: str = column("system")
    cdr: float = column("CDR", digits=4)
    cdr_spread: float = column("±", digits=4)
    under: float = column("under-translated, %")
    under_spread: float = column("±")
    over: float = column("over-translated, %")
    over_spread: float = column("±")


def coverage_rates(words: Sequence[int], reference: Iterable[Links], translation: Iterable[Links]) -> Rates:
    """The rates of a text, its words counted over all sentences: a sentence weighs as much as its words.

    Args:
        words: of each source sentence.
        reference, translation: the links of each sentence's source to its reference, and to its translation.

    Raises:
        UserError: the reference covers no word.
    """
    covered = missed = repeated = 0
    for to_reference, to_translation in zip(reference, translation):
        wanted = Counter(source for source, _ in to_reference)
        found = Counter(source for source, _ in to_translation)
        covered += len(wanted)
        missed += len(wanted.keys() - found.keys())
        repeated += sum(number > max(1, wanted[source]) for source, number in found.items())
    if not covered:
        raise UserError("no source word could be aligned to the references; learn from more text with --train")
    return Rates(1 - missed / covered, 100 * missed / sum(words), 100 * repeated / sum(words))


def aligned_rates(outputs: Sequence[Outputs], training: Corpus = ((), ())) -> List[Rates]:
    """The rates of every output, all aligned together: their sources with the references and with each one's sentences.

    Args:
        outputs: of one text, with sources and targets.
        training: further sentence pairs to learn the alignment from, in the same words.
    """
    sources, count = outputs[0].sources, len(outputs[0].sentences)
    texts = [outputs[0].targets, *(output.sentences for output in outputs)]
    forward, backward = align(
        [*training[0], *sources * len(texts)], [*training[1], *(line for text in texts for line in text)]
    )
    links = [grow_diag_final_and(*both) for both in zip(forward[len(training[0]) :], backward[len(training[0]) :])]
    reference, *translations = (links[start : start + count] for start in range(0, len(links), count))
    words = word_counts(sources)
    return [coverage_rates(words, reference, translation) for translation in translations]


def coverage_report(
    names: Sequence[str], outputs: Sequence[Outputs], training: Corpus = ((), ()), runs: int = 3
) -> Report:
    """The rates of every output, each the mean over `runs` alignments, since an alignment is a sample."""
    sampled = [aligned_rates(outputs, training) for _ in tqdm(range(runs), desc="align", disable=None)]
    rows = [
        CoverageRow(name, *(value for rates in zip(*rates_by_run) for value in _mean_and_spread(rates)))
        for name, rates_by_run in zip(names, zip(*sampled))
    ]
    labels = {"cdr": "CDR", "under": "under-translated source words, %", "over": "over-translated source words, %"}
    panels, spreads = (
        {label: {row.system: getattr(row, name + suffix) for row in rows} for name, label in labels.items()}
        for suffix in ("", "_spread")
    )
    pairs = f" and {len(training[0])} training pairs" if training[0] else ""
    markdown = (
        "# Coverage of the source\n\n"
        f"From eflomal's alignments (grow-diag-final-and) of {len(outputs[0].sentences)} sentences with their "
        f"references and with all systems' translations{pairs}. CDR: 1 − |C_ref \\ C_gen| / |C_ref|, C being the "
        "source words that are aligned. Under-translated: source words in C_ref and not in C_gen. Over-translated: "
        "those with more links to the translation than to the reference, and more than one. Both by all source words. "
        f"Means over {runs} {'alignments' if runs > 1 else 'alignment'}; ±: how far one lay from the mean at most.\n\n"
        f"{markdown_table(rows)}"
    )
    return Report("coverage", markdown, rows, points(panels, spreads, "Coverage of the source"))


def _mean_and_spread(values: Sequence[float]) -> Tuple[float, float]:
    centre = fmean(values)
    return centre, max(abs(value - centre) for value in values)
