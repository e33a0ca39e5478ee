"""The aggregation of CapsNMT, compared with the loops of the paper, and its baseline (simple aggregation) by hand."""

import pytest
import torch

from capsule_routing.modules import CapsuleAggregation, SimpleAggregation
from capsule_routing.modules.layers import sinusoids
from tests.references import aggregation as literal

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
    routed = module(hidden, mask)
    weights = list(module.vote_weight) * (module.iterations if len(module.vote_weight) == 1 else 1)
    capsules, coupling = literal.capsule_aggregation(
        hidden,
        weights,
        module.score,
        padding_mask=mask,
        position_aware=options.get("position_aware", True),
        leaky=options.get("leaky", False),
    )
    torch.testing.assert_close(routed.capsules, capsules, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(routed.coupling, coupling, rtol=1e-10, atol=1e-10)
    direction = torch.randn_like(capsules)
    tensors = [hidden, *module.parameters()]
    fast, slow = (torch.autograd.grad((found * direction).sum(), tensors) for found in (routed.capsules, capsules))
    for got, want in zip(fast, slow):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


def test_it_stops_after_the_first_iterations():
    module, hidden = make(iterations=3)
    capsules, coupling = literal.capsule_aggregation(hidden, list(module.vote_weight[:2]), module.score)
    routed = module(hidden, iterations=2)
    torch.testing.assert_close(routed.capsules, capsules, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(routed.coupling, coupling, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("position_aware", [True, False])
def test_the_scale_applies_to_capsules_and_not_to_positions(position_aware):
    module, hidden = make(position_aware=position_aware)
    squashed = module(hidden)
    module.capsule_scale = 5.0
    places = sinusoids(torch.arange(1, 4), 7) * position_aware
    capsules, coupling = module(hidden)
    torch.testing.assert_close(capsules - places, 5 * (squashed.capsules - places), rtol=1e-10, atol=1e-10)
    assert torch.equal(coupling, squashed.coupling)


def test_positions_may_be_in_agreements_only():
    module, hidden = make()
    whole = module(hidden)
    module.result_positions = False
    capsules, coupling = module(hidden)
    places = sinusoids(torch.arange(1, 4), 7)
    torch.testing.assert_close(capsules + places, whole.capsules, rtol=1e-10, atol=1e-10)
    assert torch.equal(coupling, whole.coupling)


@pytest.mark.parametrize("size", [6, 7])
def test_sinusoids_equal_those_of_fairseq(size):
    modules = pytest.importorskip("fairseq.modules")
    theirs = modules.SinusoidalPositionalEmbedding.get_embedding(20, size)
    torch.testing.assert_close(sinusoids(torch.arange(20), size).float(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "padded"])
def test_simple_aggregation_equals_a_result_by_hand(mask):
    hidden = torch.randn(3, 5, 4)
    vectors = SimpleAggregation()(hidden, mask).capsules
    for b in range(3):
        words = hidden[b] if mask is None else hidden[b][~mask[b]]
        expected = torch.stack([words.max(0).values, words.mean(0), words[0], words[-1]])
        torch.testing.assert_close(vectors[b], expected)
