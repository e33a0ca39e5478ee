"""The losses over a vocabulary that keep no logits, compared with those of logits."""

import pytest
import torch

from capsule_routing.losses import (
    bags_of_words,
    label_smoothed_cross_entropy,
    log_normalisers,
    smoothed_cross_entropy,
    weighted_sum,
)
from tests.losses.test_past_future import literal_bags

WORDS, SIZE = 11, 3
MASK = torch.zeros(3, 5, dtype=torch.bool)  # the second sentence is padded on the right, the third on the left
MASK[1, 3:] = MASK[2, :4] = True
TARGET = torch.tensor([[3, 5, 3, 7, 2], [4, 4, 9, 1, 2], [2, 8, 8, 3, 2]])


def inputs(dtype=torch.float64):
    """Return features, embeddings, a bias, and predictions of two bags."""
    torch.manual_seed(1)
    shapes = (3, 5, SIZE), (WORDS, SIZE), (WORDS,), (3, 5, SIZE), (3, 5, SIZE)
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("block", [30, 10**6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("with_bags", [True, False])
@pytest.mark.parametrize("compiling", [True, False])
def test_the_sum_of_losses_equals_that_of_logits(block, smoothing, with_bias, with_bags, compiling, monkeypatch):
    monkeypatch.setitem(log_normalisers.BLOCK, "cpu", block)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)  # then rows of padding are not left out
    features, embeddings, bias, past, future = given = inputs()
    losses = {"own": (0.5, smoothed_cross_entropy(features, TARGET, MASK, smoothing, bias if with_bias else None))}
    logits = features @ embeddings.t() + (bias if with_bias else 0)
    loss, likelihood = label_smoothed_cross_entropy(logits, TARGET, MASK, smoothing)
    expected = 0.5 * loss
    if with_bags:
        losses = {"bow": (2.0, bags_of_words(past, future, TARGET, MASK)), **losses}
        eye = torch.eye(SIZE, dtype=torch.float64)
        bags = literal_bags(past, future, eye, eye, embeddings, TARGET, MASK)
        expected = expected + 2 * bags
    total, values, likelihoods = weighted_sum(losses, embeddings)
    close = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(total, expected, **close)
    torch.testing.assert_close([values["own"], likelihoods["own"]], [loss.detach(), likelihood], **close)
    if with_bags:
        torch.testing.assert_close(values["bow"], bags.detach(), **close)
    got, want = (torch.autograd.grad(3 * value, given, allow_unused=True) for value in (total, expected))
    for gradient, other in zip(got, want):
        assert (gradient is None) == (other is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, other, **close)


def test_other_losses_are_added_with_their_weights():
    features, embeddings, *_ = inputs()
    losses = {"other": (2.0, features.square().sum()), "own": (1.0, smoothed_cross_entropy(features, TARGET, MASK))}
    total, values, likelihoods = weighted_sum(losses, embeddings)
    assert values == likelihoods and values["other"] == features.square().sum() and not values["other"].requires_grad
    torch.testing.assert_close(total.detach(), 2 * values["other"] + values["own"])
    assert weighted_sum({"other": losses["other"]}, embeddings)[0] == 2 * values["other"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_as_close_to_float32_as_with_logits(dtype):
    """At this size the sum of a word's logits exceeds the range of float16."""
    torch.manual_seed(1)
    words, size = 20_000, 16
    given = (4 * torch.randn(3, 5, size)).to(dtype), (0.5 + torch.rand(words, size)).to(dtype)
    target = torch.randint(words, (3, 5))

    def results(features, embeddings, from_features):
        features, embeddings = features.detach().requires_grad_(), embeddings.detach().requires_grad_()
        if from_features:
            loss = weighted_sum({"own": (1.0, smoothed_cross_entropy(features, target, MASK, 0.1))}, embeddings)[0]
        else:
            loss = label_smoothed_cross_entropy(features @ embeddings.t(), target, MASK, 0.1)[0]
        (128 * loss).backward()  # as a loss scaler would
        return [loss.detach(), features.grad.float() / 128, embeddings.grad.float() / 128]

    exact = results(*(tensor.float() for tensor in given), False)
    assert (given[0].float() @ given[1].float().t()).sum(-1).abs().max() > 65504
    for got, kept, want in zip(results(*given, True), results(*given, False), exact):
        assert got.isfinite().all()
        assert (got - want).norm() <= max(1.1 * (kept - want).norm(), 1e-6 * want.norm())


def test_it_is_one_graph_for_the_compiler():
    def loss(features, embeddings, bias, past, future):
        losses = {
            "own": (1.0, smoothed_cross_entropy(features, TARGET, MASK, 0.1, bias)),
            "bow": (1.0, bags_of_words(past, future, TARGET, MASK)),
        }
        return weighted_sum(losses, embeddings)[0]

    given = inputs()
    compiled = torch.compile(loss, fullgraph=True, backend="eager")(*given)
    torch.testing.assert_close(compiled, loss(*given), rtol=1e-10, atol=1e-10)
    for got, want in zip(torch.autograd.grad(compiled, given), torch.autograd.grad(loss(*given), given)):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)
