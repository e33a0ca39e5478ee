"""The aggregation of CapsNMT, compared with the loops of the paper, and its baseline (simple aggregation) by hand."""

from functools import partial

import pytest
import torch

from capsule_routing.modules import CapsuleAggregation, SimpleAggregation
from capsule_routing.modules.layers import sinusoids
from tests.references import assert_same, padded, sentences, stacked, wang2019

MASK = torch.tensor([[False] * 5, [True, True, False, False, False], [False, False, False, False, True]])


def make(size=7, **options):
    torch.manual_seed(2)
    module = CapsuleAggregation(size, **{"num_capsules": 3, **options}).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module, torch.randn(3, 5, size, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    "options, mask",
    [
        ({}, None),
        ({}, MASK),
        ({"iterations": 1}, MASK),
        ({"iterations": 2, "leaky": True}, MASK),
        ({"share_weights": True, "position_aware": False, "separable_scoring": False}, MASK),
        ({"separable_scoring": False, "size": 6}, MASK),
    ],
)
def test_it_equals_the_loops_of_the_paper(options, mask):
    module, hidden = make(**options)
    position_aware, leaky = options.get("position_aware", True), options.get("leaky", False)
    want = loops(module, hidden, mask, position_aware, coupling=wang2019.leaky_softmax if leaky else wang2019.softmax)
    assert_same(module(hidden, mask), want, [hidden, *module.parameters()])


def loops(module, hidden, mask=None, position_aware=True, iterations=None, **options):
    transforms = list(module.vote_weight) * (module.iterations if len(module.vote_weight) == 1 else 1)
    positions = partial(wang2019.sinusoid, size=hidden.size(-1), layout="halves") if position_aware else None
    results = [
        wang2019.capsule_layer(states, transforms[:iterations], module.score, positions, **options)
        for [states] in sentences(mask, hidden)
    ]
    capsules, couplings = zip(*results)
    return stacked(capsules), padded(mask, map(stacked, couplings), 0)


def test_it_stops_after_the_first_iterations():
    module, hidden = make(iterations=3)
    assert_same(module(hidden, iterations=2), loops(module, hidden, iterations=2), [hidden])


@pytest.mark.parametrize("parents, result_positions", [("output", True), ("scoring", False), ("input", None)])
def test_where_the_positions_of_capsules_are_added(parents, result_positions):
    """§3.2 does not say where. Before the squashing ("input") is an interpretation that is not built."""
    module, hidden = make()
    want = loops(module, hidden, parents=parents)
    for module.result_positions in (True, False):
        differs = (module(hidden).capsules - want[0]).abs().max() > 1e-3
        assert differs == (module.result_positions != result_positions)


@pytest.mark.parametrize("position_aware", [True, False])
def test_the_scale_applies_to_capsules_and_not_to_positions(position_aware):
    module, hidden = make(position_aware=position_aware)
    squashed = module(hidden)
    module.capsule_scale = 5.0
    places = sinusoids(torch.arange(1, 4), 7) * position_aware
    capsules, coupling = module(hidden)
    torch.testing.assert_close(capsules - places, 5 * (squashed.capsules - places), rtol=1e-10, atol=1e-10)
    assert torch.equal(coupling, squashed.coupling)


@pytest.mark.parametrize("size", [6, 7])
def test_sinusoids_equal_those_of_the_loops_and_of_fairseq(size):
    """Those of the program of Vaswani et al.; their paper prints others."""
    ours = sinusoids(torch.arange(20), size)
    loops = torch.stack([wang2019.sinusoid(place, size, layout="halves") for place in range(20)])
    torch.testing.assert_close(ours, loops, rtol=0, atol=1e-12)
    modules = pytest.importorskip("fairseq.modules")
    theirs = modules.SinusoidalPositionalEmbedding.get_embedding(20, size)
    torch.testing.assert_close(ours.float(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "padded"])
def test_simple_aggregation_equals_the_loops(mask):
    hidden = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    want = [torch.stack(wang2019.simple_aggregation(states)) for [states] in sentences(mask, hidden)]
    assert_same([SimpleAggregation()(hidden, mask).capsules], [torch.stack(want)], [hidden])
