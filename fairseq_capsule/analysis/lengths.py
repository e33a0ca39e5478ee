"""Quality and length of translations by the length of the source (Zheng et al. 2019, Fig. 5; Weng et al. 2020, Fig. 5;
Wang et al. 2019, Fig. 4)."""

from dataclasses import dataclass
from typing import Dict, List, Sequence

import numpy as np

from fairseq_capsule.analysis.charts import lines
from fairseq_capsule.analysis.reports import Report, column, markdown_table
from fairseq_capsule.evaluation.scoring import Measure

EDGES = (10, 20, 30, 40, 50)

# The words of the sources' lengths that they have → the sentences, by their numbers.
Groups = Dict[str, List[int]]


@dataclass(frozen=True)
class LengthRow:
    system: str = column("system")
    words: str = column("source words")
    sentences: int = column("sentences")
    bleu: float = column("BLEU")
    length_ratio: float = column("length ratio", digits=3)


def intervals(lengths: Sequence[int], edges: Sequence[int]) -> Groups:
    """Sentences of up to `edges[0]` words, of more and up to `edges[1]`, …, of more than the last edge.

    Groups without a sentence are left out.
    """
    bounds = sorted(set(edges))
    labels = [f"≤ {bounds[0]}", *(f"{low + 1}–{high}" for low, high in zip(bounds, bounds[1:])), f"> {bounds[-1]}"]
    groups: Groups = {label: [] for label in labels}
    for sentence, group in enumerate(np.searchsorted(bounds, lengths)):
        groups[labels[group]].append(sentence)
    return {label: sentences for label, sentences in groups.items() if sentences}


def longer_than(lengths: Sequence[int], bounds: Sequence[int]) -> Groups:
    """Sentences of more than `bounds[0]` words, of more than `bounds[1]`, …; each group holds the next one.

    Groups without a sentence are left out.
    """
    groups = {
        f"> {bound}": [sentence for sentence, length in enumerate(lengths) if length > bound]
        for bound in sorted(set(bounds))
    }
    return {label: sentences for label, sentences in groups.items() if sentences}


def equal_groups(lengths: Sequence[int], number: int) -> Groups:
    """`number` groups of about as many sentences, or fewer where many have one length: a length is in one group."""
    shares = [group / number for group in range(1, number)]
    edges = {int(edge) for edge in np.quantile(lengths, shares, method="inverted_cdf")}
    return intervals(lengths, sorted(edges)) if edges else {"all": list(range(len(lengths)))}


def by_length(names: Sequence[str], measure: Measure, groups: Groups) -> List[LengthRow]:
    """BLEU and length ratio of every system in every group.

    The length ratio is that of BLEU's brevity penalty: words of all translations of a group by words of its references.

    Args:
        names: of the measure's systems.
        measure: a BLEU and the texts it compares, of one reference.
        groups: sentences by their length.
    """
    rows = []
    for name, system in zip(names, measure.systems):
        for words, sentences in groups.items():
            references = [[reference[i] for i in sentences] for reference in measure.references]
            score = measure.metric.corpus_score([system[i] for i in sentences], references)
            rows.append(LengthRow(name, words, len(sentences), score.score, score.ratio))
    return rows


def length_report(names: Sequence[str], sources: Sequence[str], measure: Measure, groups: Groups) -> Report:
    """The table and the picture of `by_length`."""
    rows = by_length(names, measure, groups)
    number = len(groups)
    per_system = {name: rows[i * number : (i + 1) * number] for i, name in enumerate(names)}
    panels = {
        measure.label: {name: [row.bleu for row in own] for name, own in per_system.items()},
        "length ratio": {name: [row.length_ratio for row in own] for name, own in per_system.items()},
    }
    markdown = (
        "# By the length of the source\n\n"
        f"{measure.label}: {measure.text}; `{measure.metric.get_signature()}`. Source words are those of the S- lines, "
        f"subwords joined, counted at spaces; {len(sources)} sentences.\n\n{markdown_table(rows)}"
    )
    ticks = [f"{words}\n({len(sentences)})" for words, sentences in groups.items()]
    figure = lines(panels, ticks, "words of the source (sentences)", "By the length of the source")
    return Report("lengths", markdown, rows, figure)


def word_counts(sentences: Sequence[str]) -> List[int]:
    """Words of each sentence, counted at spaces."""
    return [len(sentence.split()) for sentence in sentences]
