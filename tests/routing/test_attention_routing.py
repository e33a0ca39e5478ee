"""The routings of attention logits, compared with the loops of the paper."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule_routing.functions import horizontal_routing, vertical_routing
from tests.references import assert_same, duan2020, padded, sentences, stacked
from tests.routing.test_dynamic import masks


def attention_inputs(batch=3, heads=3, length=7, size=2, seed=1):
    torch.manual_seed(seed)
    q, k = torch.randn(2, batch, heads, length, size, dtype=torch.float64)
    return q, k


def without_padding(mask, q, k):
    """Return `q` and `k` with padded rows set to 0, as the models do."""
    return (q, k) if mask is None else tuple(part.masked_fill(mask[:, None, :, None], 0) for part in (q, k))


def vertical_loops(each, iterations, mask, *dims):
    """`Ω` and `B` of the attention vectors `e[l][h]` of each sentence; `dims` of `Ω` have its words."""
    capsules, weights = zip(*(duan2020.vertical_capsules(e, iterations) for e in each))
    of_heads = [stacked(of_sentence["updated"]) for of_sentence in weights]
    return padded(mask, map(stacked, capsules), *dims), padded(mask, of_heads, 1)


def horizontal_loops(each, iterations, mask, *dims):
    """`Ω` of the attention vectors of each sentence; `dims` of it have its words."""
    omegas = [stacked(duan2020.horizontal_routing(e, iterations)).transpose(0, 1) for e in each]
    return (padded(mask, omegas, *dims),)


def vectors_of(mask, q, k, causal=False):
    """Equation 5 for each sentence."""
    by_head = [[part.unbind(1) for part in parts] for parts in sentences(mask, q.transpose(1, 2), k.transpose(1, 2))]
    return [duan2020.attention_vectors(queries, keys, causal) for queries, keys in by_head]


def scaled(mask, q, k):
    """Queries and keys whose products are the logits."""
    return without_padding(mask, q / q.size(-1) ** 0.5, k)


@pytest.mark.parametrize("iterations, masked", [(1, False), (3, True)])
def test_vertical_equals_the_loops(iterations, masked):
    mask = masks((3, 7))[0] if masked else None
    inputs = [part.requires_grad_() for part in attention_inputs()]
    q, k = scaled(mask, *inputs)
    got = vertical_routing(q @ k.transpose(2, 3), iterations, padding_mask=mask)
    assert_same(got, vertical_loops(vectors_of(mask, *inputs), iterations, mask, 0, 1), inputs)


@pytest.mark.parametrize("iterations, masked", [(1, False), (3, True)])
@pytest.mark.parametrize("causal, factored", [(False, False), (False, True), (True, False), (True, True)])
def test_horizontal_equals_the_loops(iterations, masked, causal, factored):
    mask = masks((3, 7))[0] if masked else None
    inputs = [part.requires_grad_() for part in attention_inputs()]
    q, k = scaled(mask, *inputs)
    options = dict(causal=causal, factors=(q, k) if factored else None, padding_mask=mask)
    got = horizontal_routing(q @ k.transpose(2, 3), iterations, **options)
    assert_same([got], horizontal_loops(vectors_of(mask, *inputs, causal), iterations, mask, 1, 2), inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_the_last_rows_can_be_computed_alone(causal):
    mask = masks((3, 7))[0]
    q, k = without_padding(mask, *attention_inputs())
    options = dict(padding_mask=mask, causal=causal)
    whole = horizontal_routing(q @ k.mT, 3, **options)
    rows = horizontal_routing(q @ k.mT, 3, last=3, **options)
    torch.testing.assert_close(rows, whole[:, :, -3:], rtol=0, atol=1e-13)


def test_attention_to_another_sequence_equals_the_loops():
    torch.manual_seed(1)
    logits, mask = torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True), masks((2, 5))[0]
    each = [e for [e] in sentences(mask, logits.transpose(1, 2))]
    assert_same(vertical_routing(logits, 3, padding_mask=mask), vertical_loops(each, 3, mask, 0), [logits])
    assert_same([horizontal_routing(logits, 3, padding_mask=mask)], horizontal_loops(each, 3, mask, 1), [logits])


@settings(max_examples=15)
@given(
    heads=st.integers(1, 4),
    length=st.integers(1, 6),
    iterations=st.integers(1, 4),
    scale=st.sampled_from([0.0, 1e-15, 1.0, 50.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_the_routings_keep_their_properties(heads, length, iterations, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k = scale * torch.randn(2, 2, heads, length, 3, generator=generator)
    mask = torch.rand(2, length, generator=generator) < 0.4
    q.requires_grad_()
    queries, keys = without_padding(mask, q, k)
    logits = queries @ keys.transpose(2, 3)
    logits.retain_grad()
    masked = dict(padding_mask=mask)
    omega, weights = vertical_routing(logits, iterations, **masked)
    outputs = [
        horizontal_routing(logits, iterations, **masked),
        horizontal_routing(logits, iterations, causal=True, **masked),
        horizontal_routing(logits, iterations, factors=(queries, keys), **masked),
        omega.unsqueeze(1),
    ]
    (sum(output.sum() for output in outputs) + weights.sum()).backward()
    for output in outputs:
        assert torch.isfinite(output).all()
        assert (output.norm(dim=-1) <= 1 + 1e-5).all()
        padded = mask[:, None, :].expand(output.shape[:3])
        assert (output[padded] == 0).all()
        assert (output.transpose(2, 3)[padded.expand(output.shape[:3])] == 0).all()
    for gradient in (logits.grad, q.grad):
        assert torch.isfinite(gradient).all()
        assert (gradient[mask[:, None, :].expand(gradient.shape[:3])] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_routed_in_float32(dtype):
    q, k = (30 * tensor.float() for tensor in attention_inputs())
    logits = (q @ k.transpose(2, 3)).to(dtype)
    for routing in (lambda e: vertical_routing(e, 3)[0], lambda e: horizontal_routing(e, 3)):
        assert routing(logits).dtype == dtype
        torch.testing.assert_close(routing(logits), routing(logits.float()).to(dtype))
