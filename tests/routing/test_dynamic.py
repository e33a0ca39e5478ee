"""`dynamic_routing`, `squash` and `leaky_softmax`: compared with loops and results by hand, and their properties."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule_routing.functions import RoutingResult, dynamic_routing, leaky_softmax, masked_softmax, squash
from capsule_routing.functions.precision import in_float32
from tests.references import assert_same, duan2020, padded, sentences, stacked

COMPETITIONS = ["output", "leaky", "input"]


def masks(*shapes):
    """Return a mask for each (batch, length). The first sentence is padded on the left, the second on the right."""
    result = []
    for batch, length in shapes:
        mask = torch.zeros(batch, length, dtype=torch.bool)
        mask[0, : length // 2] = True
        mask[1, length - 1 :] = True
        result.append(mask)
    return result


@pytest.mark.parametrize("iterations, masked", [(1, False), (3, True)])
def test_routing_equals_the_loops(iterations, masked):
    """Other competitions, and votes of each iteration, are compared in `tests/modules/`, with the systems' loops."""
    torch.manual_seed(1)
    votes = torch.randn(3, 5, 3, 7, dtype=torch.float64, requires_grad=True)
    mask = masks((3, 5))[0] if masked else None
    loops = [duan2020.routing(of_sentence, iterations) for [of_sentence] in sentences(mask, votes)]
    want = stacked([loop[0] for loop in loops]), padded(mask, [stacked(loop[1]) for loop in loops], 0)
    assert_same(dynamic_routing(votes, iterations, padding_mask=mask), want, [votes])


def test_broadcast_votes_equal_expanded_ones():
    torch.manual_seed(1)
    votes = torch.randn(2, 1, 4, 3, 5, dtype=torch.float64)
    states = torch.randn(2, 6, 1, 3, dtype=torch.float64)

    def agreement(vote, capsules):
        return (vote * capsules.unsqueeze(-3)).sum(-1) * states

    broadcast = dynamic_routing(votes, 3, agreement=agreement)
    expanded = dynamic_routing(votes.expand(2, 6, 4, 3, 5), 3, agreement=agreement)
    assert broadcast.capsules.shape == (2, 6, 3, 5)
    for got, want in zip(broadcast, expanded):
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@settings(max_examples=20)
@given(
    sizes=st.tuples(*(st.integers(1, 6) for _ in range(3))),
    iterations=st.integers(1, 4),
    competition=st.sampled_from(COMPETITIONS),
    scale=st.sampled_from([1e-20, 1e-3, 1.0, 30.0, 1e18]),
    seed=st.integers(0, 1000),
)
def test_routing_keeps_its_properties(sizes, iterations, competition, scale, seed):
    inputs, outputs, size = sizes
    generator = torch.Generator().manual_seed(seed)
    votes = (scale * torch.randn(2, inputs, outputs, size, generator=generator)).requires_grad_()
    mask = torch.rand(2, inputs, generator=generator) < 0.4
    capsules, coupling = dynamic_routing(votes, iterations, padding_mask=mask, competition=competition)
    capsules.sum().backward()

    assert torch.isfinite(capsules).all() and torch.isfinite(coupling).all()
    assert (capsules.norm(dim=-1) <= 1 + 1e-6).all()
    assert (coupling[mask] == 0).all()
    if scale <= 1e3:
        assert torch.isfinite(votes.grad).all()
        assert (votes.grad[mask] == 0).all()
    if competition == "output":
        torch.testing.assert_close(coupling.sum(-1), (~mask).float())
    elif competition == "input":
        torch.testing.assert_close(coupling.sum(-2), (~mask).any(1, keepdim=True).float().expand(2, outputs))
    else:
        assert (coupling.sum(-1)[~mask] <= 1 + 1e-6).all()

    order = torch.randperm(inputs, generator=generator)
    permuted = dynamic_routing(votes[:, order], iterations, padding_mask=mask[:, order], competition=competition)
    if scale <= 1:
        torch.testing.assert_close(permuted.capsules, capsules, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("competition", COMPETITIONS)
def test_a_sentence_of_only_padding_gives_zeros(competition):
    votes = torch.randn(1, 3, 2, 4, requires_grad=True)
    result = dynamic_routing(votes, 3, padding_mask=torch.ones(1, 3, dtype=torch.bool), competition=competition)
    sum(part.sum() for part in result).backward()
    for part in (*result, votes.grad):
        assert (part == 0).all()


def test_arguments_can_be_in_any_order_and_wrong_ones_are_refused():
    votes = torch.randn(2, 5, 3, 4)
    by_name = dynamic_routing(iterations=2, votes=votes)
    torch.testing.assert_close(by_name.capsules, dynamic_routing(votes, 2).capsules)
    with pytest.raises(ValueError, match="iterations must be at least 1, not 0"):
        dynamic_routing([], 0)
    with pytest.raises(ValueError, match="output, leaky, input"):
        dynamic_routing(votes, 2, competition="outputs")
    with pytest.raises(ValueError, match="3 iterations need as many votes, not 2"):
        dynamic_routing([votes] * 2, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_routed_in_float32(dtype):
    torch.manual_seed(1)
    votes = (20 * torch.randn(2, 5, 3, 64)).to(dtype)  # squared norms that overflow float16
    result = dynamic_routing(votes, 3)
    expected = dynamic_routing(votes.float(), 3)
    for got, want in zip(result, expected):
        assert got.dtype == dtype
        torch.testing.assert_close(got, want.to(dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for got, want in zip(dynamic_routing(votes.float(), 3), expected):
            assert got.dtype == torch.float32
            torch.testing.assert_close(got, want)


def test_squash_equals_its_equation():
    s = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    squashed = squash(s)
    torch.testing.assert_close(
        squashed.detach(), torch.tensor([[15 / 26, 20 / 26], [0, 0], [0, 0.5]], dtype=torch.float64)
    )
    squashed.sum().backward()
    assert (s.grad[1] == 0).all()
    assert torch.autograd.gradcheck(squash, s.detach()[[0, 2]].requires_grad_())
    torch.testing.assert_close(squash(s.T, dim=0), squash(s).T)


def test_squash_near_zero_and_far_from_it_has_finite_gradients():
    s = torch.tensor([[1e-30, 0.0], [1e-10, 1e-10], [1e18, 1e18]], requires_grad=True)
    squash(s).sum().backward()
    assert torch.isfinite(s.grad).all()


def test_leaky_softmax_equals_a_result_by_hand():
    logits = torch.tensor([[0.0, 0.0], [1.0, -1.0]], dtype=torch.float64)
    e = torch.tensor(1.0, dtype=torch.float64).exp()
    expected = torch.stack([torch.full((2,), 1 / 3, dtype=torch.float64), torch.stack([e, 1 / e]) / (1 + e + 1 / e)])
    torch.testing.assert_close(leaky_softmax(logits, dim=1), expected)
    assert torch.autograd.gradcheck(lambda x: leaky_softmax(x, dim=1), logits.requires_grad_())
    extreme = torch.tensor([[500.0, -500.0], [-500.0, -500.0]])
    torch.testing.assert_close(leaky_softmax(extreme, dim=1), torch.tensor([[1.0, 0.0], [0.0, 0.0]]))


def test_leading_dimensions_of_a_mask_broadcast():
    torch.manual_seed(1)
    votes, mask = torch.randn(2, 1, 5, 4, 3, dtype=torch.double), torch.rand(2, 7, 5) < 0.4
    got = dynamic_routing(votes, 3, padding_mask=mask)
    want = dynamic_routing(votes.expand(2, 7, 5, 4, 3), 3, padding_mask=mask)
    torch.testing.assert_close(got, want)


def test_named_tuples_of_half_precision_are_routed_in_float32():
    result = RoutingResult(torch.randn(2, 3).half(), torch.randn(2, 3).half())
    seen = []
    returned = in_float32(lambda parts: seen.append(parts) or [parts])(result)
    assert isinstance(seen[0], RoutingResult) and seen[0].capsules.dtype == torch.float32
    assert isinstance(returned[0], RoutingResult) and returned[0].coupling.dtype == torch.float16


@pytest.mark.parametrize("shape, dim", [((5,), 0), ((3, 5), -1), ((2, 3, 40), -1), ((2, 3, 40), 0)])
def test_a_masked_softmax_is_over_the_valid_entries(shape, dim):
    torch.manual_seed(1)
    logits, mask = torch.randn(shape, dtype=torch.float64), torch.rand(shape) < 0.4
    expected = logits.masked_fill(mask, float("-inf")).softmax(dim).nan_to_num(0.0)
    torch.testing.assert_close(masked_softmax(logits, dim, mask), expected)
    torch.testing.assert_close(masked_softmax(logits, dim, None), logits.softmax(dim))


def test_whole_numbers_do_not_decide_the_precision_of_the_result():
    half = torch.randn(2).bfloat16()
    result, tokens = in_float32(lambda tokens, states: (states, tokens))(torch.tensor([1, 2]), half)
    assert torch.equal(result, half) and tokens.dtype == torch.int64
