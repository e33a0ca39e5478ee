"""Does a difference between two systems hold for other training seeds and other sentences?

Both systems are trained with `n` seeds. The difference of their scores varies with the seeds and with the sentences of
the test set:

    error² = s² / n + jackknife²        degrees of freedom = error⁴ · (n - 1) / (s² / n)²

`s` is the standard deviation of the `n` differences. `jackknife` is the standard error of their mean over sentences,
from the scores without each sentence in turn. The second formula is that of Welch and Satterthwaite.

The difference of one seed varies with the training, with the sentences that suit this one training, and with the
sentences that suit all trainings of a system. `s` contains the first two, `jackknife` the last two. So the second is
counted twice and the error is rather too large. But with two or three seeds `s` is often too small by chance, and then
the degrees of freedom are too many. Both together: docs/evaluation.md states how often the test is wrong.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, List, Sequence

import numpy as np
from sacrebleu.metrics.base import Metric
from scipy import optimize, stats
from tqdm import tqdm

from fairseq_capsule_lab.evaluation.scores import Measure

CONFIDENCE = 0.95
POWER = 0.8
QUANTILES = 500  # of a distribution, for the mean over it


@dataclass(frozen=True)
class Effect:
    """The mean difference between a system and the baseline over seeds, and its 95% interval from `low` to `high`.

    Attributes:
        p: two-sided; 1 if there is no variation and no difference.
        p_adjusted: the p after the correction of Holm for all systems of the comparison.
        detectable: the smallest true difference that a test at 5% finds with a probability of 80%.
        error_over_seeds, error_over_sentences: `s / √n` and `jackknife` of the formula.
    """

    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    detectable: float
    error_over_seeds: float
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
    """Compare systems with a baseline, over at least 2 seeds; returns the baseline's scores, then those of each system.

    Args:
        measure: its `systems` are the outputs of the baseline, one for each seed, then those of each system. Outputs
            with the same place form a pair, for example with the same seed or started from the same baseline.
    """
    progress = tqdm(measure.systems, desc=measure.label, unit=" outputs", delay=2, disable=None, leave=False)
    outputs = [jackknife_scores(measure.metric, system, measure.references) for system in progress]
    groups = [np.stack(outputs[start : start + seeds]) for start in range(0, len(outputs), seeds)]
    baseline, *systems = groups
    differences = [group - baseline for group in systems]
    effects = holm([effect(values[:, 0], jackknife_error(values[:, 1:].mean(0))) for values in differences])
    scores = [SeedScores(group[:, 0].tolist(), of_group) for group, of_group in zip(systems, effects)]
    return [SeedScores(baseline[:, 0].tolist()), *scores]


def jackknife_scores(metric: Metric, sentences: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
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
    half = float(half_width(over_seeds, error_over_sentences, seeds))
    freedom = _freedom(over_seeds, error_over_sentences, seeds)
    p = 2 * float(stats.t.sf(abs(difference) / error, freedom)) if error else float(difference == 0)
    smallest = detectable(over_seeds, error_over_sentences, seeds)
    low, high = difference - half, difference + half
    return Effect(difference, low, high, p, p, smallest, math.sqrt(over_seeds), error_over_sentences)


def half_width(over_seeds: Any, error_over_sentences: float, seeds: int, level: float = 1 - CONFIDENCE) -> Any:
    """Compute half the width of the interval. The test at `level` finds a mean difference that is larger.

    `over_seeds` is `s² / n`, a number or an array, and so is the result.
    """
    error = np.sqrt(over_seeds + error_over_sentences**2)
    return error * stats.t.isf(level / 2, _freedom(over_seeds, error_over_sentences, seeds))


def detectable(over_seeds: float, error_over_sentences: float, seeds: int) -> float:
    """Compute the true difference that the test finds with a probability of 80%.

    The given variation is taken as the true one. A comparison finds another `s`, so the probability is the mean over
    the distribution of `s²`. Without an error over sentences the result is that of the noncentral t distribution.
    """
    error = math.sqrt(over_seeds + error_over_sentences**2)
    if not error:
        return 0.0
    halves = half_width(over_seeds * variance_quantiles(seeds), error_over_sentences, seeds)

    def excess(true: float) -> float:
        return float((stats.norm.sf((halves - true) / error) + stats.norm.cdf((-halves - true) / error)).mean()) - POWER

    return float(optimize.brentq(excess, 0, halves.max() + error))


def variance_quantiles(seeds: int) -> np.ndarray:
    """Compute equally probable values of `s²` for a true variance of 1: `[QUANTILES]`."""
    return stats.chi2.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES, seeds - 1) / (seeds - 1)


def _freedom(over_seeds: Any, error_over_sentences: float, seeds: int) -> Any:
    """Compute the degrees of freedom of Welch and Satterthwaite; infinite without a variation over seeds."""
    share = over_seeds / np.maximum(over_seeds + error_over_sentences**2, np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        return np.divide(seeds - 1, share**2)


def holm(effects: Sequence[Effect]) -> List[Effect]:
    """Set `p_adjusted` for the number of effects by the step-down method of Holm (1979)."""
    adjusted, largest = list(effects), 0.0
    for rank, index in enumerate(sorted(range(len(effects)), key=lambda index: effects[index].p)):
        largest = max(largest, min(1.0, (len(effects) - rank) * effects[index].p))
        adjusted[index] = replace(effects[index], p_adjusted=largest)
    return adjusted
