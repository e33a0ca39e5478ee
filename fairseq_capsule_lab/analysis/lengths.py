"""Quality and length of translations by the length of the source.

The figures of the papers: Zheng et al. 2019, Fig. 5; Weng et al. 2020, Fig. 5; Wang et al. 2019, Fig. 4.
"""

from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

import numpy as np

from capsule_routing.text.languages import has_words
from fairseq_capsule_lab.analysis.charts import lines
from fairseq_capsule_lab.analysis.output import Analysis, column, make_analysis, series
from fairseq_capsule_lab.evaluation.scores import Measure

EDGES = (10, 20, 30, 40, 50)  # words
GROUPS = 5  # of lengths in characters, which have no usual bounds

# Label of a range of source lengths → numbers of its sentences.
Groups = Dict[str, List[int]]


@dataclass(frozen=True)
class LengthRow:
    system: str = column("system")
    words: str = column("source length")
    sentences: int = column("sentences")
    bleu: float = column("BLEU")
    length_ratio: float = column("length ratio", digits=3)


def intervals(lengths: Sequence[int], edges: Sequence[int]) -> Groups:
    """Group sentences: up to `edges[0]` words, then up to `edges[1]`, …, then more than the last edge.

    Empty groups are left out.
    """
    bounds = sorted(set(edges))
    between = (f"{low + 1}–{high}" if high > low + 1 else str(high) for low, high in zip(bounds, bounds[1:]))
    labels = [f"≤ {bounds[0]}", *between, f"> {bounds[-1]}"]
    groups: Groups = {label: [] for label in labels}
    for sentence, group in enumerate(np.searchsorted(bounds, lengths)):
        groups[labels[group]].append(sentence)
    return {label: sentences for label, sentences in groups.items() if sentences}


def longer_than(lengths: Sequence[int], bounds: Sequence[int]) -> Groups:
    """Group sentences: more than `bounds[0]` words, more than `bounds[1]`, …. Each group contains the next one.

    Empty groups are left out.
    """
    over = {bound: [sentence for sentence, length in enumerate(lengths) if length > bound] for bound in bounds}
    return {f"> {bound}": over[bound] for bound in sorted(over) if over[bound]}


def equal_groups(lengths: Sequence[int], number: int) -> Groups:
    """Group sentences by length into `number` groups of about equal size.

    All sentences of one length are in one group, so there can be fewer groups.
    """
    shares = [group / number for group in range(1, number)]
    edges = {int(edge) for edge in np.quantile(lengths, shares, method="inverted_cdf")}
    return intervals(lengths, sorted(edges)) if edges else {"all": list(range(len(lengths)))}


def by_length(names: Sequence[str], measure: Measure, groups: Groups) -> List[LengthRow]:
    """BLEU and length ratio of every system in every group of sentences. The measure is a BLEU with one reference.

    The length ratio is the one in BLEU's brevity penalty: words of the translations divided by words of the references.
    """
    rows = []
    parts = {words: measure.of(sentences) for words, sentences in groups.items()}
    for number, name in enumerate(names):
        for words, part in parts.items():
            score = part.metric.corpus_score(part.systems[number], part.references)
            rows.append(LengthRow(name, words, len(groups[words]), score.score, score.ratio))
    return rows


def analyze_lengths(names: Sequence[str], measure: Measure, groups: Groups, unit: str) -> Analysis:
    """An analysis with the table and the chart of `by_length`; `unit` is one of `source_lengths`."""
    rows = by_length(names, measure, groups)
    title = "By the length of the source"
    split = ", split at spaces" if unit == "words" else ""
    text = (
        f"{measure.label}: {measure.text}; `{measure.metric.get_signature()}`. Source length: {unit} of the S- lines "
        f"with subwords joined{split}; {len(measure.systems[0])} sentences."
    )
    panels = series(rows, {measure.label: "bleu", "length ratio": "length_ratio"})
    ticks = [f"{words}\n({len(sentences)})" for words, sentences in groups.items()]
    return make_analysis("lengths", title, text, rows, lines(panels, ticks, f"{unit} of the source (sentences)", title))


def source_lengths(sentences: Sequence[str]) -> Tuple[List[int], str]:
    """The length of each sentence and its unit: words, or characters of a text whose words no spaces separate."""
    if has_words(sentences):
        return word_counts(sentences), "words"
    return [len("".join(sentence.split())) for sentence in sentences], "characters"


def default_groups(lengths: Sequence[int], unit: str) -> Groups:
    """Group sentences by their length in a unit of `source_lengths`."""
    return intervals(lengths, EDGES) if unit == "words" else equal_groups(lengths, GROUPS)


def word_counts(sentences: Sequence[str]) -> List[int]:
    """The number of words of each sentence, split at spaces."""
    return [len(sentence.split()) for sentence in sentences]
