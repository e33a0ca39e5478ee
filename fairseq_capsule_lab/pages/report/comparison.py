"""Scores of several systems on one test set: with intervals, by length of the source, and by sentence."""

from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Sequence, Tuple

from sacrebleu.metrics import CHRF
from tqdm import tqdm

from fairseq_capsule_lab.analysis.lengths import default_groups, intervals, source_lengths
from fairseq_capsule_lab.evaluation.scores import Measure, Rouge, bootstrap, measures, plain_sentences, rouge_measures
from fairseq_capsule_lab.pages.report.systems import System, TestSet


class Estimate(NamedTuple):
    """The score of a system on a text.

    Attributes:
        interval: half the width of the 95% interval around the mean of the samples.
        p: the p-value of the paired bootstrap against the baseline; None for the baseline and for equal scores.
    """

    score: float
    interval: float
    p: Optional[float]


class Comparison(NamedTuple):
    """One measure for all systems, the baseline first."""

    measure: Measure
    estimates: List[Estimate]


class LengthGroup(NamedTuple):
    """The sentences in one range of source lengths."""

    words: str
    sentences: List[int]
    comparison: Comparison


class SentenceScores(NamedTuple):
    """Scores of single sentences by the measure `label`; for each system its detokenised sentences and their scores."""

    label: str
    texts: List[List[str]]
    scores: List[List[float]]


@dataclass(frozen=True)
class ComparedSystems:
    """All that a page shows. `unit` is that of the lengths, `samples` and `seed` are those of the bootstrap."""

    test_set: TestSet
    systems: List[System]
    comparisons: List[Comparison]
    groups: List[LengthGroup]
    unit: str
    sentences: SentenceScores
    samples: int
    seed: int

    @property
    def names(self) -> List[str]:
        return [system.name for system in self.systems]


def scores(
    test_set: TestSet, systems: Sequence[System], samples: int, seed: int, external: Sequence[Measure] = ()
) -> List[Comparison]:
    """Compute every measure of `fairseq-capsule score` and the external ones. Compare each system with the first."""
    outputs = [system.translations for system in systems]
    if test_set.summaries:
        own = rouge_measures(outputs, test_set.references, test_set.lowercase)
    else:
        texts = (outputs, test_set.references, test_set.language)
        own = measures(*texts, lowercase=test_set.lowercase, tokeniser=test_set.bleu_tokeniser)
    progress = tqdm([*own, *external], desc="bootstrap", unit=" measures", disable=None)
    return [Comparison(measure, estimates(measure, samples, seed)) for measure in progress]


def estimates(measure: Measure, samples: int, seed: int) -> List[Estimate]:
    """Scores with intervals and p-values, by sacrebleu's paired bootstrap against the first system."""
    results = bootstrap(measure, samples, seed)
    baseline = results[0].score
    return [
        Estimate(result.score, result.ci or 0.0, None if result.score == baseline else result.p_value)
        for result in results
    ]


def by_length(
    systems: Sequence[System], measure: Measure, samples: int, seed: int, edges: Sequence[int]
) -> Tuple[List[LengthGroup], str]:
    """A measure by groups of source length, and the unit of the lengths: words or characters.

    The words and punctuation of the sources are separated, as the models read them, with subwords joined. Without
    `edges` the groups are the default ones.
    """
    lengths, unit = source_lengths(systems[0].translations.sources)
    groups = intervals(lengths, edges) if edges else default_groups(lengths, unit)
    made = []
    for words, sentences in tqdm(groups.items(), desc="by length", unit=" groups", disable=None):
        part = measure.of(sentences)
        made.append(LengthGroup(words, sentences, Comparison(part, estimates(part, samples, seed))))
    return made, unit


def by_sentence(test_set: TestSet, systems: Sequence[System]) -> SentenceScores:
    """chrF of every detokenised sentence, or ROUGE-L of every summary."""
    if test_set.summaries:
        rouge = Rouge("rougeL", test_set.lowercase)
        texts = [system.translations.sentences for system in systems]
        label, score = "ROUGE-L", lambda text, references: rouge.sentence_score(text, references).score
    else:
        texts = [plain_sentences(system.translations, test_set.language) for system in systems]
        chrf = CHRF(lowercase=test_set.lowercase)
        label, score = "chrF", lambda text, references: chrf.sentence_score(text, references).score
    references = list(zip(*test_set.references))
    progress = tqdm(texts, desc="sentences", unit=" systems", disable=None)
    return SentenceScores(
        label, texts, [[score(text, list(lines)) for text, lines in zip(system, references)] for system in progress]
    )
