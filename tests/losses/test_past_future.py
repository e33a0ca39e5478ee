"""The guided losses, compared with the paper's loops and with results by hand."""

import math
from functools import partial

import pytest
import torch

from capsule_routing.losses import bag_of_words_loss, bag_overlap, content_agreement_loss, log_normalisers
from capsule_routing.losses.past_future import bags_from_logits
from tests.references import assert_same, sentences, zheng2019

WORDS, SIZE, CAPSULES = 11, 3, 4

sum_of_bags = partial(bag_of_words_loss, reduction="sum")
sum_of_agreements = partial(content_agreement_loss, reduction="sum")


def tensors(*shapes):
    torch.manual_seed(1)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


MASK = torch.zeros(3, 5, dtype=torch.bool)  # the second sentence is padded on the right, the third on the left
MASK[1, 3:] = MASK[2, :4] = True


def target():
    return torch.tensor([[3, 5, 3, 7, 2], [4, 4, 9, 1, 2], [2, 8, 8, 3, 2]])


# What the reductions are in the loops: which words the bags have, and whether a bag counts with its mean.
FORMS = {"mean": ("disjoint", True), "sum": ("disjoint", False), "printed": ("printed", False)}
every_reduction = pytest.mark.parametrize("reduction", FORMS)
every_mask = pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "padded"])


def literal_bags(past, future, past_weight, future_weight, embeddings, words, mask=None, reduction="mean"):
    """`L_BoW` of a batch from the capsules and the heads, one sentence after the other."""
    weights = past_weight, future_weight, embeddings
    each = sentences(mask, past, future, words)
    return sum(zheng2019.bow_loss(*capsules, *weights, y, *FORMS[reduction]) for *capsules, y in each)


@every_reduction
@every_mask
@pytest.mark.parametrize("block", [30, 10**6])
def test_bag_of_words_equals_the_loops(reduction, mask, block, monkeypatch):
    monkeypatch.setitem(log_normalisers.BLOCK, "cpu", block)
    shapes = (3, 5, CAPSULES), (3, 5, CAPSULES), (SIZE, CAPSULES), (SIZE, CAPSULES), (WORDS, SIZE)
    inputs = past, future, past_weight, future_weight, embeddings = tensors(*shapes)
    projected = past @ past_weight.t(), future @ future_weight.t()
    want = literal_bags(*inputs, target(), mask, reduction)
    got = bag_of_words_loss(*projected, embeddings, target(), mask, reduction=reduction)
    of_logits = bags_from_logits(*projected, lambda x: x @ embeddings.t(), target(), mask, reduction=reduction)
    assert_same([got, of_logits], [want, want], inputs)


def test_printed_bags_have_the_current_word_twice():
    """Six words, 60 words in the vocabulary: 7 words a step are predicted as §3.3 prints it, 6 if bags are disjoint."""
    features, embeddings = torch.zeros(1, 6, SIZE), torch.randn(60, SIZE)
    for reduction, words in (("printed", 7), ("sum", 6)):
        loss = bag_of_words_loss(features, features, embeddings, torch.arange(6)[None], reduction=reduction)
        assert loss.item() == pytest.approx(words * math.log(60))


def test_bag_of_words_equals_a_result_by_hand():
    """A sentence `y = (0, 1)`, a vocabulary of two words with embeddings 0 and 1, and features of one dimension."""
    past = torch.tensor([[[5.0], [0.0]]], requires_grad=True)
    future = torch.tensor([[[0.0], [math.log(3)]]], requires_grad=True)
    embeddings = torch.tensor([[0.0], [1.0]])
    loss = sum_of_bags(past, future, embeddings, torch.tensor([[0, 1]]))
    # Step 1: PAST is empty; FUTURE contains both words, each with probability 1/2. Step 2: PAST contains word 0 with
    # probability 1/2; FUTURE contains word 1 with probability 3/4.
    assert loss.item() == pytest.approx((2 * math.log(2) + math.log(2) - math.log(3 / 4)) / 2)
    loss.backward()
    # The gradient of a bag's loss with respect to the logit of word 1 is (words · p(1) − words that are 1) / T.
    torch.testing.assert_close(past.grad.flatten(), torch.tensor([0.0, 0.5]) / 2)
    torch.testing.assert_close(future.grad.flatten(), torch.tensor([2 * 0.5 - 1, 0.75 - 1]) / 2)


def test_mean_bag_of_words_equals_a_result_by_hand():
    """The sentence of the test above: step 1 has no PAST and two words in FUTURE, step 2 a word in each."""
    past = torch.tensor([[[5.0], [0.0]]], requires_grad=True)
    future = torch.tensor([[[0.0], [math.log(3)]]], requires_grad=True)
    loss = bag_of_words_loss(past, future, torch.tensor([[0.0], [1.0]]), torch.tensor([[0, 1]]))
    assert loss.item() == pytest.approx((math.log(2) + math.log(2) - math.log(3 / 4)) / 2)
    loss.backward()
    torch.testing.assert_close(past.grad.flatten(), torch.tensor([0.0, 0.5]) / 2)
    torch.testing.assert_close(future.grad.flatten(), torch.tensor([0.5 - 1 / 2, 0.75 - 1]) / 2)


@every_reduction
def test_a_sample_of_the_steps_estimates_the_loss_without_bias(reduction):
    inputs = tensors((3, 5, SIZE), (3, 5, SIZE), (WORDS, SIZE))
    arguments = (*inputs, target(), MASK)
    bag_loss = partial(bag_of_words_loss, reduction=reduction)
    whole = bag_loss(*arguments)
    torch.manual_seed(1)
    with torch.no_grad():
        estimates = torch.stack([bag_loss(*arguments, steps=0.25) for _ in range(500)])
    assert estimates.std() > 0.05 * whole
    assert abs(estimates.mean() - whole) < 4 * estimates.std() / math.sqrt(len(estimates))
    torch.testing.assert_close(bag_loss(*arguments, steps=1.0), whole, rtol=0, atol=0)


@pytest.mark.parametrize("wrong", [{"steps": 0.0}, {"steps": 1.5}, {"reduction": "total"}])
def test_wrong_arguments_are_refused(wrong):
    inputs = tensors((3, 5, SIZE), (3, 5, SIZE), (WORDS, SIZE))
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        bag_of_words_loss(*inputs, target(), **wrong)


@every_reduction
def test_no_logits_are_kept(reduction):
    past, future, embeddings = tensors((3, 5, SIZE), (3, 5, SIZE), (1000, SIZE))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        bag_of_words_loss(past, future, embeddings, target(), reduction=reduction)
    assert max(tensor.numel() for tensor in kept) <= embeddings.numel()  # 15 steps would be 15,000 logits


@every_mask
@every_reduction
def test_content_agreement_equals_the_loops(reduction, mask):
    shape = (SIZE, CAPSULES) if reduction == "mean" else (CAPSULES, SIZE)
    inputs = past, future, state, *weights = tensors((3, 5, CAPSULES), (3, 5, CAPSULES), (3, 5, SIZE), shape, shape)
    each = sentences(mask, past, future, state)
    want = sum(zheng2019.bca_loss(p, f, *weights, z, program=reduction == "mean") for p, f, z in each)
    assert_same([content_agreement_loss(*inputs, mask, reduction=reduction)], [want], inputs)


def test_content_agreement_equals_a_result_by_hand():
    """Two steps with one dimension: z = (1, 3), W^P = 2, W^F = 1."""
    past = torch.tensor([[[2.0], [5.0]]], requires_grad=True)
    future = torch.tensor([[[1.0], [3.0]]], requires_grad=True)
    state = torch.tensor([[[1.0], [3.0]]], requires_grad=True)
    loss = sum_of_agreements(past, future, state, torch.tensor([[2.0]]), torch.tensor([[1.0]]))
    # PAST: (2 - 2·1)² and (5 - 2·2)²; FUTURE: (1 - 2)² and (3 - 3)²; each over T = 2.
    assert loss.item() == pytest.approx((0 + 1 + 1 + 0) / 2)
    loss.backward()
    torch.testing.assert_close(past.grad.flatten(), torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(future.grad.flatten(), torch.tensor([-1.0, 0.0]))
    # Gradient with respect to each z: the second distance of PAST gives -2·1·2·½/2 = -1, the first of FUTURE
    # 2·1·½/2 = ½.
    torch.testing.assert_close(state.grad.flatten(), torch.tensor([-0.5, -0.5]))


def test_mean_content_agreement_equals_a_result_by_hand():
    """Two steps, z = (1, 3) in both of two dimensions; one capsule of one dimension, W^P = (2, 0), W^F = (1, 1)."""
    past, future = (torch.tensor([[[0.5], [1.0]]], requires_grad=True) for _ in range(2))
    state = torch.tensor([[[1.0, 1.0], [3.0, 3.0]]])
    weights = torch.tensor([[2.0], [0.0]]), torch.tensor([[1.0], [1.0]])
    loss = content_agreement_loss(past, future, state, *weights)
    # PAST: (1, 0) and (2, 0) against (1, 1) and (2, 2). FUTURE: (½, ½) and (1, 1) against (2, 2) and (3, 3).
    # The distances are summed, divided by two dimensions and by T = 2.
    assert loss.item() == pytest.approx(((0 + 1) + (0 + 4) + 2 * 1.5**2 + 2 * 2**2) / 2 / 2)
    loss.backward()
    torch.testing.assert_close(past.grad.flatten(), torch.tensor([0.0, 0.0]))  # the first dimension agrees
    torch.testing.assert_close(future.grad.flatten(), torch.tensor([2 * 2 * -1.5, 2 * 2 * -2.0]) / 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_long_sentences_in_half_precision_are_finite(dtype):
    torch.manual_seed(1)
    past, future, state = (torch.randn(2, 400, 8).to(dtype).requires_grad_() for _ in range(3))
    weight = torch.randn(8, 8).to(dtype)
    embeddings = (20 * torch.randn(50, 8)).to(dtype).requires_grad_()
    words = torch.randint(50, (2, 400))
    loss = sum_of_bags(past, future, embeddings, words) + bag_of_words_loss(past, future, embeddings, words)
    for agreement in (sum_of_agreements, content_agreement_loss):
        loss = loss + agreement(100 * past, future, 100 * state, weight, weight)
    assert loss.dtype == torch.float32 and torch.isfinite(loss)
    loss.backward()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (past, future, state, embeddings))


@pytest.mark.parametrize("how", ["float16", "bfloat16", "autocast"])
def test_gradients_in_half_precision_equal_those_in_float32(how):
    """They are close to those in float32, even if the probability of a word is too small for float16."""
    torch.manual_seed(1)
    past, future, embeddings = (torch.randn(2, 6, 8), torch.randn(2, 6, 8), 0.1 * torch.randn(60_000, 8))
    words = torch.randint(60_000, (2, 6))

    def gradient(dtype, autocast):
        inputs = [tensor.detach().to(dtype).requires_grad_() for tensor in (past, future, embeddings)]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = sum_of_bags(*inputs, words)
        (1024 * loss).backward()  # as a loss scaler would
        return [tensor.grad.float() / 1024 for tensor in inputs]

    expected = gradient(torch.float32, False)
    got = gradient(torch.float32 if how == "autocast" else getattr(torch, how), how == "autocast")
    for gradient_, want in zip(got, expected):
        assert (gradient_ - want).norm() < 0.02 * want.norm()
    rare = torch.ones(60_000, dtype=torch.bool)
    rare[words.flatten()] = False
    assert (got[2][rare] - expected[2][rare]).norm() < 0.02 * expected[2][rare].norm()


def test_no_gradient_is_computed_if_none_is_required():
    past, future, embeddings = tensors((3, 5, SIZE), (3, 5, SIZE), (WORDS, SIZE))
    with torch.no_grad():
        loss = sum_of_bags(past, future, embeddings, target())
    assert not loss.requires_grad
    torch.testing.assert_close(loss, sum_of_bags(past, future, embeddings, target()).detach())


@pytest.mark.parametrize(
    "agreement, shape", [(sum_of_agreements, (CAPSULES, SIZE)), (content_agreement_loss, (SIZE, CAPSULES))]
)
def test_content_agreement_is_computed_in_float32_under_autocast(agreement, shape):
    inputs = tensors((3, 5, CAPSULES), (3, 5, CAPSULES), (3, 5, SIZE), shape, shape)
    inputs = [tensor.detach().float() for tensor in inputs]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = agreement(*inputs)
    assert torch.equal(loss, agreement(*inputs))


@every_mask
@pytest.mark.parametrize("top", [1, 2])
def test_overlap_equals_the_loops(mask, top):
    past, future, embeddings = tensors((3, 5, SIZE), (3, 5, SIZE), (WORDS, SIZE))
    got = bag_overlap(past, future, embeddings, target(), mask, top=top)
    assert list(map(float, got)) == pytest.approx(literal_overlap(past, future, embeddings, target(), mask, top))


def literal_overlap(past, future, embeddings, words, mask=None, top=5):
    """The rates of a batch, summed over sentences, and the number of sentences that have one; PAST, then FUTURE.

    Our bags are those of the loss: §4.3 counts the words that are consumed, which are y_<t where y_t is predicted.
    """
    eye = torch.eye(embeddings.size(1), dtype=embeddings.dtype)
    each = [
        zheng2019.overlap_rates(p, f, eye, eye, embeddings, y, "disjoint", top)
        for p, f, y in sentences(mask, past, future, words)
    ]
    sums = []
    for rates in zip(*each):
        found = [rate for rate in rates if rate is not None]
        sums += [sum(found), len(found)]
    return sums


def test_overlap_equals_a_result_by_hand():
    """The embeddings are the identity, so features are logits. A sentence `y = (0, 0, 2)` with a vocabulary of four."""
    past = torch.tensor([[[9.0, 9, 9, 9], [1, 4, 3, 2], [4, 3, 2, 1]]])
    future = torch.tensor([[[1.0, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4]]])
    overlap = bag_overlap(past, future, torch.eye(4), torch.tensor([[0, 0, 2]]), top=1)
    # A bag of n words (repeated words included) is compared with the n most probable words.
    # PAST: no bag at step 1; {0} in {1}; {0} (twice) in {0, 1}.
    # FUTURE: {0, 2} in {1, 2, 3}; {0, 2} in {0, 1}; {2} in {3}.
    assert float(overlap.past) == pytest.approx((0 + 1) / 2)
    assert float(overlap.future) == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert int(overlap.past_sentences) == int(overlap.future_sentences) == 1


def test_overlap_in_half_precision_distinguishes_close_logits():
    """Logits 256 and 257 are equal in bfloat16, but the second word is more probable."""
    features = torch.ones(1, 1, 2, dtype=torch.bfloat16)
    embeddings = torch.tensor([[256.0, 0], [256, 1]], dtype=torch.bfloat16)
    overlap = bag_overlap(features, features, embeddings, torch.tensor([[0]]), top=1)
    assert float(overlap.future) == 0


def test_a_sentence_without_a_past_is_left_out():
    features = torch.zeros(2, 2, 4)
    padding = torch.tensor([[False, True], [False, False]])
    overlap = bag_overlap(features, features, torch.eye(4), torch.tensor([[2, 1], [3, 2]]), padding)
    assert (int(overlap.past_sentences), int(overlap.future_sentences)) == (1, 2)
