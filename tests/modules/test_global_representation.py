"""The pooling of a layer, the cell between layers and the gate, compared with the equations of the paper."""

import functools

import pytest
import torch
from torch import nn

from capsule_routing.modules import CapsulePooling, ContextGate, GlobalRepresentation, MeanPooling, PlainSum
from capsule_routing.modules.global_representation import POOLINGS
from tests.references import assert_same, sentences, stacked, weng2020
from tests.references import padded as fill

WIDTH = 12


def shaken(module):
    """Return the module in float64 with random parameters: the last ones of a new module are 0."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return module.double()


def words(batch=3, length=5):
    torch.manual_seed(2)
    hidden = torch.randn(batch, length, WIDTH, dtype=torch.float64, requires_grad=True)
    mask = torch.zeros(batch, length, dtype=torch.bool)
    mask[0, :2] = mask[1, -3:] = True
    return hidden, mask


@pytest.mark.parametrize(
    "num_capsules, capsule_dim, iterations, padded", [(4, 3, 3, True), (1, 5, 2, False), (7, None, 1, True)]
)
def test_it_equals_the_loops_of_the_paper(num_capsules, capsule_dim, iterations, padded):
    module = shaken(CapsulePooling(WIDTH, num_capsules, capsule_dim, iterations))
    hidden, mask = words()
    mask = mask if padded else None
    vectors, couplings = [], []
    for [states] in sentences(mask, hidden):
        transforms = module.vote_weight.transpose(1, 2)
        capsules, coupling = weng2020.capsules(states, transforms, iterations, over="words", agreement="votes")
        vectors.append(weng2020.attentive_pooling(capsules, module.query, module.output))
        couplings.append(stacked(coupling).t())
    got = module(hidden, mask), module.capsules(hidden, mask).coupling
    assert_same(got, (torch.stack(vectors), fill(mask, couplings, 0)), [hidden, *module.parameters()])


@pytest.mark.parametrize("other", [{"over": "capsules"}, {"agreement": "states"}])
def test_words_compete_for_a_capsule_and_votes_are_compared(other):
    """Eq. 5 has a softmax over the words, Sabour et al. over the capsules. Eq. 6 compares states, if `d_c = d`."""
    module = shaken(CapsulePooling(WIDTH, 4, WIDTH))
    hidden, _ = words()
    arguments = hidden[0], module.vote_weight.transpose(1, 2), module.iterations
    ours, _ = weng2020.capsules(*arguments, over="words", agreement="votes")
    theirs, _ = weng2020.capsules(*arguments, **{"over": "words", "agreement": "votes", **other})
    got = module.capsules(hidden).capsules[0]
    torch.testing.assert_close(got, stacked(ours), rtol=1e-10, atol=1e-10)
    assert (got - stacked(theirs)).abs().max() > 1e-3


def test_the_defaults_are_those_of_the_paper():
    module = CapsulePooling(512)
    assert module.vote_weight.shape == (32, 512, 16) and module.iterations == 3 and module.pooling == "attentive"
    assert not module(torch.randn(2, 3, 512)).any()  # the vector of a new module is 0


@pytest.mark.parametrize("pooling", ["mean", "concat"])
def test_other_poolings_equal_their_definition(pooling):
    module = shaken(CapsulePooling(WIDTH, 4, 3, pooling=pooling))
    hidden, mask = words()
    capsules = module.capsules(hidden, mask).capsules
    pooled = capsules.mean(1) if pooling == "mean" else capsules.reshape(3, 12)
    torch.testing.assert_close(module(hidden, mask), module.output(pooled))
    assert module.query is None


def test_the_mean_is_over_valid_words():
    module = shaken(MeanPooling(WIDTH))
    hidden, mask = words()
    expected = torch.stack([module.output(hidden[b][~mask[b]].mean(0)) for b in range(3)])
    torch.testing.assert_close(module(hidden, mask), expected)
    torch.testing.assert_close(module(hidden), module.output(hidden.mean(1)))
    mask[:] = True
    assert torch.isfinite(module(hidden, mask)).all()


@pytest.mark.parametrize("reset", ["after", "before"])
def test_layers_are_aggregated_by_one_cell(reset):
    """The cell is PyTorch's, which resets the state after its product. Cho et al. (2014) reset it before."""
    module = shaken(GlobalRepresentation(WIDTH, [CapsulePooling(WIDTH, 2) for _ in range(3)]))
    hidden, mask = words()
    layers = [hidden, 2 * hidden, hidden - 1]
    cell = module.aggregation
    parameters = [
        dict(zip("rzh", parameter.chunk(3)))  # PyTorch's order
        for parameter in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    ]
    pooled = torch.stack([pooling(layer, mask) for pooling, layer in zip(module.poolings, layers)], dim=1)
    want = torch.stack(
        [
            weng2020.layer_wise_recurrence(vectors, lambda x, state: weng2020.gru(x, state, *parameters, reset))
            for vectors in pooled
        ]
    )
    got = module(layers, mask)
    if reset == "after":
        assert_same([got], [want], [hidden, *module.parameters()])
    else:
        assert (got - want).abs().max() > 1e-3
    fresh = GlobalRepresentation(WIDTH, [CapsulePooling(WIDTH, 2) for _ in range(3)]).double()
    assert not fresh(layers, mask).any()


@pytest.mark.parametrize(
    "build",
    [*(functools.partial(CapsulePooling, num_capsules=4, pooling=pooling) for pooling in POOLINGS), MeanPooling],
    ids=[*POOLINGS, "no capsules"],
)
def test_pooling_all_layers_together_equals_pooling_each(build):
    """The gradients of the parameters of each layer are equal too."""
    poolings = [shaken(build(WIDTH)) for _ in range(3)]
    hidden, mask = words()
    layers = [hidden, 2 * hidden, hidden - 1]
    inputs = [hidden, *(parameter for pooling in poolings for parameter in pooling.parameters())]
    together = poolings[0].together(poolings, layers, mask)
    alone = torch.stack([pooling(layer, mask) for pooling, layer in zip(poolings, layers)])
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-10)
    factor = torch.randn_like(alone)
    gradients = torch.autograd.grad((together * factor).sum(), inputs, retain_graph=True)
    for gradient, expected in zip(gradients, torch.autograd.grad((alone * factor).sum(), inputs)):
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-10)


def test_without_aggregation_the_last_layer_is_pooled():
    module = shaken(GlobalRepresentation(WIDTH, [CapsulePooling(WIDTH, 2)], aggregate=False))
    hidden, mask = words()
    torch.testing.assert_close(module([hidden, hidden + 1], mask), module.poolings[0](hidden + 1, mask))


def test_the_gate_equals_its_equation():
    module = shaken(ContextGate(WIDTH))
    state, vector = words()[0], torch.randn(3, WIDTH, dtype=torch.float64, requires_grad=True)
    parameters = module.projection.weight, module.projection.bias
    want = [[weng2020.context_gate(r, s, *parameters) for r in of_sentence] for of_sentence, s in zip(state, vector)]
    states, gates = (stacked([[step[part] for step in steps] for steps in want]) for part in (0, 1))
    assert_same((module(state, vector), module.gate(state, vector)), (states, gates), [state, vector, *parameters])
    torch.testing.assert_close(PlainSum()(state, vector), state + vector[:, None])


def test_nothing_larger_than_the_votes_is_kept():
    """The votes `[B, I, K·d_c]` have the size of the words `[B, I, d]` if `d_c = d / K`."""
    module, hidden = CapsulePooling(64, 8), torch.randn(2, 50, 64, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        module(hidden)
    assert max(tensor.untyped_storage().nbytes() for tensor in kept) <= hidden.untyped_storage().nbytes()
    assert isinstance(module.output, nn.Sequential)
