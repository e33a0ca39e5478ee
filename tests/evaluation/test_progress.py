"""The progress of a bootstrap on a terminal."""

import random

import pytest
from sacrebleu.metrics import CHRF
from tqdm import tqdm

from fairseq_capsule_lab.evaluation import progress
from fairseq_capsule_lab.evaluation.scoring import Measure, bootstrap


@pytest.fixture
def bars(monkeypatch):
    """The progress bars, drawn immediately and without a terminal."""
    made = []

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(**{**options, "disable": False, "delay": 0})
            made.append(self)

    monkeypatch.setattr(progress, "tqdm", Bar)
    return made


def sentences(seed):
    rng = random.Random(seed)
    return [" ".join(rng.choices(["man", "dog", "runs", "the"], k=6)) for _ in range(20)]


@pytest.mark.parametrize("systems", [2, 3])
def test_a_bootstrap_ends_at_the_number_of_its_scores(bars, systems):
    metric = CHRF()
    measure = Measure("chrf", "chrF", "text", metric, [sentences(n) for n in range(systems)], [sentences(9)])
    first = bootstrap(measure, 30, 1)
    (bar,) = bars
    assert bar.n == bar.total == 30 * (2 * systems - 1) + systems
    assert metric.corpus_score(measure.systems[0], measure.references).score == first[0].score
    assert bar.n == bar.total  # the metric is no longer patched
    second = bootstrap(measure, 30, 1)
    assert [vars(result) for result in first] == [vars(result) for result in second]
