"""Means of the overlap, compared with results by hand."""

import pytest
import torch

from capsule_routing.losses import bag_overlap, bag_overlap_by_step
from fairseq_capsule_lab.analysis.overlap import OverlapMean

NAN = float("nan")


def test_means_equal_a_result_by_hand():
    """Three sentences: 4 steps, the first without a bag; 2 steps, padded on the left; 1 step without a bag."""
    rates = torch.tensor([[NAN, 0.5, 1.0, 0.0], [NAN, NAN, NAN, 1.0], [NAN, NAN, NAN, NAN]])
    padding = torch.tensor([[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]]).bool()
    mean = OverlapMean(parts=2)
    mean.add(rates[:1], padding[:1])
    mean.add(rates[1:], padding[1:])
    # Means of the sentences: 0.5 and 1; the third is left out. First half: steps 1-2 of the first sentence. Second
    # half: steps 3-4 of the first and step 2 of the second.
    assert mean.means() == pytest.approx([(0.5 + 1) / 2, 0.5, (1 + 0 + 1) / 3])
    assert mean.sentences == 2


def test_a_part_without_steps_has_no_mean():
    mean = OverlapMean(parts=4)
    mean.add(torch.tensor([[1.0, 0.5]]), torch.zeros(1, 2, dtype=torch.bool))
    assert mean.means() == [0.75, None, 1.0, None, 0.5]  # step t of T in part ⌈4 t / T⌉
    assert OverlapMean(parts=1).means() == [None, None]


def test_the_mean_of_the_whole_target_is_what_the_task_reports():
    generator = torch.Generator().manual_seed(1)
    past, future = torch.randn(2, 3, 6, 8, generator=generator)
    embeddings = torch.randn(20, 8, generator=generator)
    target = torch.randint(2, 20, (3, 6), generator=generator)
    padding = torch.arange(6) >= torch.tensor([[6], [3], [1]])
    means = OverlapMean(), OverlapMean()
    for mean, rates in zip(means, bag_overlap_by_step(past, future, embeddings, target, padding, top=1)):
        mean.add(rates, padding)
    overlap = bag_overlap(past, future, embeddings, target, padding, top=1)
    assert means[0].means()[0] == pytest.approx(float(overlap.past / overlap.past_sentences))
    assert means[1].means()[0] == pytest.approx(float(overlap.future / overlap.future_sentences))
    assert 0 < means[0].means()[0] < 1
