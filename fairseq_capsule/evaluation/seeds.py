"""Does a difference between two systems hold for other training seeds and other sentences?

Both systems are trained with `n` seeds. The difference of their scores varies with the seeds and with the sentences of
the test set:

    error² = s² / n + jackknife²        degrees of freedom = error⁴ · (n - 1) / (s² / n)²

`s` is the standard deviation of the `n` differences. `jackknife` is the standard error of their mean over sentences,
from the scores without each sentence in turn. The second formula is that of Welch and Satterthwaite. The differences of
the seeds already contain some of the variation over sentences, so the error is rather too large than too small.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, List, Sequence

import numpy as np
from sacrebleu.metrics.base import Metric
from scipy import stats
from tqdm import tqdm

from fairseq_capsule.evaluation.scoring import Measure

CONFIDENCE = 0.95
POWER = 0.8


@dataclass(frozen=True)
class Effect:
    """The difference between a system and the baseline, as a mean over seeds.

    Attributes:
        difference: the mean difference.
        low, high: the 95 % interval of the difference.
        p: two-sided; 1 if there is no variation and no difference.
        p_adjusted: the p after the correction of Holm for all systems of the comparison.
        detectable: the smallest true difference that a test at 5 % finds with a probability of 80 %.
        error_over_sentences: `jackknife` of the formula.
    """

    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    detectable: float
    error_over_sentences: float


@dataclass(frozen=True)
class SeedScores:
    """The scores of a system, one for each seed, and its effect. The baseline has no effect."""

    scores: List[float]
    effect: "Effect | None" = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def deviation(self) -> float:
        """The standard deviation over seeds."""
        return float(np.std(self.scores, ddof=1))


def compare_seeds(measure: Measure, seeds: int) -> List[SeedScores]:
    """Compare systems with a baseline, seed by seed.

    Args:
        measure: its `systems` are the outputs of the baseline, one for each seed, then those of each system. Outputs
            with the same place form a pair, for example with the same seed or started from the same baseline.
        seeds: the number of seeds, at least 2.

    Returns:
        The scores of the baseline, then those of each system.
    """
    progress = tqdm(measure.systems, desc=measure.label, unit=" outputs", delay=2, disable=None, leave=False)
    outputs = [jackknifed(measure.metric, system, measure.references) for system in progress]
    groups = [np.stack(outputs[start : start + seeds]) for start in range(0, len(outputs), seeds)]
    baseline, *systems = groups
    differences = [group - baseline for group in systems]
    effects = holm([effect(each[:, 0], jackknife_error(each[:, 1:].mean(0))) for each in differences])
    found = [SeedScores(group[:, 0].tolist(), each) for group, each in zip(systems, effects)]
    return [SeedScores(baseline[:, 0].tolist()), *found]


def jackknifed(metric: Metric, sentences: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    """Compute the score of all `N` sentences, and the `N` scores without one of them: `[1 + N]`."""
    parts = np.array(metric._extract_corpus_statistics(sentences, references), dtype=float)
    total = parts.sum(0)

    def score(sums: Any) -> float:
        return metric._compute_score_from_stats(sums.tolist()).score

    return np.array([score(total), *(score(total - part) for part in parts)])


def jackknife_error(without_each: np.ndarray) -> float:
    """Compute the standard error over sentences of a figure from the `N` figures without one of them: `[N]`."""
    return math.sqrt(float(without_each.var()) * (len(without_each) - 1))


def effect(differences: np.ndarray, error_over_sentences: float) -> Effect:
    """Compute an effect. Its `p_adjusted` is its `p`.

    Args:
        differences: one for each seed, `[n]`, at least 2.
        error_over_sentences: the standard error of their mean over sentences.
    """
    seeds = len(differences)
    difference = float(differences.mean())
    over_seeds = float(differences.var(ddof=1)) / seeds
    error = math.hypot(math.sqrt(over_seeds), error_over_sentences)
    freedom = error**4 * (seeds - 1) / over_seeds**2 if over_seeds else math.inf
    distribution = stats.t(freedom) if math.isfinite(freedom) else stats.norm()
    half = error * distribution.ppf((1 + CONFIDENCE) / 2)
    p = 2 * float(distribution.sf(abs(difference) / error)) if error else float(difference == 0)
    detectable = half + error * distribution.ppf(POWER)
    return Effect(difference, difference - half, difference + half, p, p, detectable, error_over_sentences)


def holm(effects: Sequence[Effect]) -> List[Effect]:
    """Set `p_adjusted` for the number of effects by the step-down method of Holm (1979)."""
    adjusted, largest = list(effects), 0.0
    for rank, index in enumerate(sorted(range(len(effects)), key=lambda index: effects[index].p)):
        largest = max(largest, min(1.0, (len(effects) - rank) * effects[index].p))
        adjusted[index] = replace(effects[index], p_adjusted=largest)
    return adjusted
