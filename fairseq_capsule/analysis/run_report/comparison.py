"""Figures of several systems on one test set: with intervals, by length of the source, sentence by sentence."""

from dataclasses import dataclass, replace
from typing import List, Optional, Sequence

from sacrebleu.metrics import CHRF
from tqdm import tqdm

from fairseq_capsule.analysis.lengths import EDGES, Groups, equal_groups, intervals, word_counts
from fairseq_capsule.analysis.run_report.systems import System, TestSet
from fairseq_capsule.evaluation.rouge import CharacterRouge
from fairseq_capsule.evaluation.scoring import Measure, Moses, bootstrap, detokenised, measures
from fairseq_capsule.evaluation.summary_scores import rouge_measures

LENGTH_GROUPS = 5  # of summaries, whose articles have no usual lengths


@dataclass(frozen=True)
class Estimate:
    """A system's score of a text.

    Attributes:
        interval: half of the 95 % interval around the mean of the samples.
        p: of the paired bootstrap against the baseline; None for the baseline, and where both have the same score.
        length_ratio: words of the translations by words of the references; None of a measure without.
    """

    score: float
    interval: float
    p: Optional[float]
    length_ratio: Optional[float]


@dataclass(frozen=True)
class Comparison:
    """A measure of all systems, the baseline first."""

    measure: Measure
    estimates: List[Estimate]

    @property
    def signature(self) -> str:
        return str(self.measure.metric.get_signature())


@dataclass(frozen=True)
class LengthGroup:
    """The sentences whose source has some length."""

    words: str
    sentences: List[int]
    comparison: Comparison


@dataclass(frozen=True)
class SentenceScores:
    """Attributes:
    label: of the measure of a sentence.
    texts: the sentences of each system, as a reader sees them.
    scores: of each system, one a sentence.
    """

    label: str
    texts: List[List[str]]
    scores: List[List[float]]


def scores(test_set: TestSet, systems: Sequence[System], samples: int, seed: int) -> List[Comparison]:
    """Every measure of `fairseq-capsule score`, each system against the first one."""
    outputs = [system.translations for system in systems]
    if test_set.summaries:
        found = list(rouge_measures(outputs, test_set.references, test_set.lowercase))
    else:
        found = list(measures(outputs, test_set.references, test_set.language, test_set.lowercase))
    progress = tqdm(found, desc="bootstrap", unit=" measures", disable=None)
    return [Comparison(measure, estimates(measure, samples, seed)) for measure in progress]


def estimates(measure: Measure, samples: int, seed: int) -> List[Estimate]:
    """Scores with intervals and p, by sacrebleu's paired bootstrap against the first system."""
    results = bootstrap(measure, samples, seed)
    baseline = results[0].score
    return [
        Estimate(
            result.score,
            result.ci or 0.0,
            None if result.score == baseline else result.p_value,
            getattr(measure.metric.corpus_score(system, measure.references), "ratio", None),
        )
        for system, result in zip(measure.systems, results)
    ]


def by_length(
    test_set: TestSet, sources: Sequence[str], measure: Measure, samples: int, seed: int, edges: Sequence[int] = EDGES
) -> List[LengthGroup]:
    """A measure in groups of sentences by the length of the source: words, or characters of an article to sum up.

    Args:
        sources: as the models read them, subwords joined, which have words and punctuation apart.
    """
    groups: Groups
    if test_set.summaries:
        groups = equal_groups([len(source) for source in sources], LENGTH_GROUPS)
    else:
        groups = intervals(word_counts(sources), edges)
    progress = tqdm(groups.items(), desc="by length", unit=" groups", disable=None)
    return [LengthGroup(words, chosen, _of_group(measure, chosen, samples, seed)) for words, chosen in progress]


def _of_group(measure: Measure, sentences: Sequence[int], samples: int, seed: int) -> Comparison:
    part = replace(
        measure,
        systems=[[system[i] for i in sentences] for system in measure.systems],
        references=[[reference[i] for i in sentences] for reference in measure.references],
    )
    return Comparison(part, estimates(part, samples, seed))


def by_sentence(test_set: TestSet, systems: Sequence[System]) -> SentenceScores:
    """chrF of every sentence, as a reader sees it; of summaries ROUGE-L."""
    if test_set.summaries:
        rouge = CharacterRouge()
        texts = [system.translations.sentences for system in systems]
        label, score = "ROUGE-L", lambda text, references: 100 * rouge.f1(text, references)["rougeL"]
    else:
        moses = Moses(test_set.language)
        texts = [detokenised(system.translations, moses) for system in systems]
        chrf = CHRF(lowercase=test_set.lowercase)
        label, score = "chrF", lambda text, references: chrf.sentence_score(text, references).score
    references = list(zip(*test_set.references))
    progress = tqdm(texts, desc="sentences", unit=" systems", disable=None)
    return SentenceScores(
        label, texts, [[score(text, list(lines)) for text, lines in zip(system, references)] for system in progress]
    )
