"""Comparison of systems over seeds and sentences: the jackknife, the interval, and the correction of p-values."""

import math

import numpy as np
import pytest
from scipy import stats

from capsule_routing.text.rouge import CharacterRouge
from fairseq_capsule_lab.evaluation.scores import Measure, Rouge, tokenised_bleu
from fairseq_capsule_lab.evaluation.seeds import (
    Effect,
    compare_seeds,
    effect,
    half_width,
    holm,
    jackknife_error,
    jackknife_scores,
    variance_quantiles,
)

REFERENCES = [f"the {animal} sees a {colour} ball in the {number} garden ." for animal, colour, number in zip(
    "dog cat bird horse fox hen cow pig".split(), "red green blue white black pink grey brown".split(),
    "first second third fourth fifth sixth seventh eighth".split())]  # fmt: skip


def outputs(seed: int, errors: float):
    """The references, where each word is wrong with a probability."""
    random = np.random.default_rng(seed)
    return [" ".join("x" if random.random() < errors else word for word in line.split()) for line in REFERENCES]


@pytest.mark.parametrize("lowercase", [False, True])
def test_a_jackknifed_score_is_the_score_of_the_other_sentences(lowercase):
    metric, system = tokenised_bleu(lowercase), outputs(1, 0.2)
    whole, *without = jackknife_scores(metric, system, [REFERENCES])
    assert whole == pytest.approx(metric.corpus_score(system, [REFERENCES]).score)
    for index, score in enumerate(without):
        rest = [[*lines[:index], *lines[index + 1 :]] for lines in (system, REFERENCES)]
        assert score == pytest.approx(metric.corpus_score(rest[0], [rest[1]]).score)


def test_the_error_over_sentences_of_a_mean_is_the_standard_error():
    system = outputs(2, 0.3)
    whole, *without = jackknife_scores(Rouge("rouge1"), system, [REFERENCES])
    each = [100 * CharacterRouge().f1(*pair)["rouge1"] for pair in zip(system, [[line] for line in REFERENCES])]
    # Equal differences of the seeds leave only the variation over sentences.
    found = effect(np.array([whole, whole]), jackknife_error(np.array(without)))
    error = np.std(each, ddof=1) / math.sqrt(len(each))
    assert found.difference == pytest.approx(np.mean(each))
    assert found.high - found.difference == pytest.approx(stats.norm.ppf(0.975) * error)
    assert found.p == pytest.approx(2 * stats.norm.sf(whole / error))
    assert found.detectable == pytest.approx((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * error, rel=1e-5)


def test_without_variation_over_sentences_it_is_the_paired_t_test():
    baseline, system = np.array([30.0, 31.0, 30.4]), np.array([30.9, 31.2, 31.3])
    found = effect(system - baseline, 0.0)
    expected = stats.ttest_rel(system, baseline)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_the_interval_contains_the_true_difference_in_95_of_100_comparisons():
    """Scores are means over sentences, with effects of the seed, of the sentence, and of both together."""
    random, inside, runs, seeds, sentences, true = np.random.default_rng(3), 0, 400, 3, 60, 0.5
    for _ in range(runs):
        scores = (
            true
            + random.normal(0, 0.3, (seeds, 1))
            + random.normal(0, 2, (1, sentences))
            + random.normal(0, 2, (seeds, sentences))
        )
        without = (scores.sum(1, keepdims=True) - scores) / (sentences - 1)
        found = effect(scores.mean(1), jackknife_error(without.mean(0)))
        inside += found.low < true < found.high
    assert 0.94 < inside / runs <= 0.995


def size(seeds: int, of_seed: float, of_both: float, of_sentence: float, level: float = 0.05) -> float:
    """The probability that the test finds a difference where there is none, without random numbers.

    Args:
        of_seed, of_both, of_sentence: the standard deviations of a difference over trainings, over sentences in one
            training only, and over sentences in all trainings alike. The sentences are many.
    """
    over_seeds = (of_seed**2 + of_both**2) / seeds
    drawn = over_seeds * variance_quantiles(seeds)
    over_sentences = math.sqrt(of_sentence**2 + of_both**2 / seeds)
    halves = half_width(drawn, over_sentences, seeds, level)
    return float(2 * stats.norm.sf(halves / math.hypot(math.sqrt(over_seeds), of_sentence)).mean())


RATES = [  # three standard deviations, and the percentages of false findings with 2, 3 and 5 seeds
    ((0.16, 0.18, 0.04), (4.4, 3.1, 2.3)),  # about the sizes of the fine-tuned systems in docs/results.md, in BLEU
    ((0.25, 0.18, 0.04), (7.1, 4.7, 3.4)),
    ((0.5, 0, 0.25), (9.0, 6.2, 5.2)),
    ((0.5, 0, 0.1), (12.8, 7.8, 5.9)),
    ((0, 0, 0.25), (5.0, 5.0, 5.0)),
    ((0.5, 0, 0), (5.0, 5.0, 5.0)),
]


@pytest.mark.parametrize("deviations, rates", RATES)
def test_the_rates_of_false_findings(deviations, rates):
    found = [100 * size(seeds, *deviations) for seeds in (2, 3, 5)]
    assert found == pytest.approx(rates, abs=0.1)


@pytest.mark.parametrize("seeds, deviation, over_sentences", [(2, 0.3, 0), (3, 0.3, 0.13), (5, 0.1, 0.25)])
def test_the_detectable_difference_is_found_in_80_of_100_comparisons(seeds, deviation, over_sentences):
    random, runs = np.random.default_rng(7), 20_000
    one = np.linspace(-1, 1, seeds)
    true = effect(one * deviation / one.std(ddof=1), over_sentences).detectable
    if not over_sentences:  # the noncentral t distribution
        critical, shift = stats.t.isf(0.025, seeds - 1), true * math.sqrt(seeds) / deviation
        assert stats.nct.sf(critical, seeds - 1, shift) == pytest.approx(0.8, abs=0.002)
    scores = true + random.normal(0, deviation, (runs, seeds)) + random.normal(0, over_sentences, (runs, 1))
    halves = half_width(scores.var(1, ddof=1) / seeds, over_sentences, seeds)
    assert np.mean(abs(scores.mean(1)) > halves) == pytest.approx(0.8, abs=0.015)


def test_equal_outputs_have_no_effect():
    baseline, same = compare_seeds(measure([outputs(1, 0.1), outputs(2, 0.1)] * 2), 2)
    assert baseline.effect is None
    assert same.scores == baseline.scores
    assert (same.effect.difference, same.effect.p, same.effect.detectable) == (0, 1, 0)


def test_the_error_over_sentences_is_that_of_the_mean_over_seeds():
    systems = [outputs(seed, errors) for errors in (0.4, 0.2) for seed in range(3)]
    _, found = compare_seeds(Measure("rouge1", "ROUGE-1", "characters", Rouge("rouge1"), systems, [REFERENCES]), 3)
    rouge = CharacterRouge()
    each = np.array([[rouge.f1(*pair)["rouge1"] for pair in zip(lines, zip(REFERENCES))] for lines in systems])
    differences = 100 * (each[3:] - each[:3]).mean(0)
    assert found.effect.error_over_sentences == pytest.approx(np.std(differences, ddof=1) / math.sqrt(len(REFERENCES)))


def test_a_system_with_fewer_errors_is_found_and_one_with_as_many_is_not():
    systems = [
        [outputs(seed + 10 * number, errors) for seed in range(4)] for number, errors in enumerate([0.4, 0, 0.4])
    ]
    baseline, better, equal = compare_seeds(measure(sum(systems, [])), 4)
    assert better.mean == pytest.approx(100)
    assert better.deviation == 0
    assert better.effect.difference == pytest.approx(better.mean - baseline.mean)
    assert better.effect.p < better.effect.p_adjusted < 0.01
    assert equal.effect.p > 0.05
    assert equal.effect.p_adjusted == equal.effect.p  # the largest p is not multiplied


@pytest.mark.parametrize(
    "ps, adjusted",
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]),
        ([0.9, 0.8], [1, 1]),
        ([0.02] * 2, [0.04] * 2),
    ],
)
def test_p_values_are_adjusted_step_by_step(ps, adjusted):
    effects = [Effect(0, 0, 0, p, p, 0, 0, 0) for p in ps]
    assert [each.p_adjusted for each in holm(effects)] == pytest.approx(adjusted)


def measure(systems):
    return Measure("bleu", "BLEU", "tokens", tokenised_bleu(False), systems, [REFERENCES])
