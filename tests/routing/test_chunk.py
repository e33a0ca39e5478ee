"""Causal routing in blocks and of the last position, compared with the loops of the paper and with each other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule_routing.functions import horizontal_routing, route_last_token
from capsule_routing.functions.horizontal import BLOCKS_PAY
from capsule_routing.functions.horizontal.chunk import BLOCK, causal_routing
from capsule_routing.functions.horizontal.recurrent import append_to_block, in_own_block, split_block
from tests.references import routing as reference
from tests.routing.test_dynamic import same_with_gradient


def factors(batch, heads, length, size, seed=1, dtype=torch.float64, padded=True):
    """Return queries, keys and a mask. The first sentence is padded on the left, the last on the right."""
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, batch, heads, length, size, dtype=torch.float64, generator=generator).to(dtype)
    mask = torch.zeros(batch, length, dtype=torch.bool)
    if padded:
        mask[0, : length // 3] = True
        mask[-1, length - length // 4 :] = True
    return q, k, mask


def zeroed(mask, *rows):
    return [row.masked_fill(mask[:, None, :, None], 0) for row in rows]


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 4, 5, 9])
@pytest.mark.parametrize("rows", [2, 7])
def test_blocks_equal_the_loops(length, iterations, rows):
    q, k, mask = factors(2, 2, length, 3)

    def fast(q, k):
        omega = causal_routing(*zeroed(mask, q, k), iterations, block=4, rows=rows)
        return (omega.masked_fill(mask[:, None, :, None], 0),)

    def literal(q, k):
        masks = dict(padding_mask=mask, key_padding_mask=mask)
        return (reference.horizontal_routing(q @ k.mT, iterations, causal=True, **masks),)

    same_with_gradient(fast, literal, q, k)


@settings(max_examples=40, deadline=None)
@given(
    batch=st.integers(1, 2),
    heads=st.integers(1, 3),
    length=st.integers(1, 24),
    size=st.integers(1, 5),
    iterations=st.integers(1, 4),
    block=st.integers(1, 9),
    rows=st.integers(1, 30),
    padded=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_routing_in_blocks_equals_routing_without(batch, heads, length, size, iterations, block, rows, padded, seed):
    q, k, mask = factors(batch, heads, length, size, seed, padded=padded)

    def in_blocks(q, k):
        return (causal_routing(*zeroed(mask, q, k), iterations, block=block, rows=rows),)

    def whole(q, k):
        q, k = zeroed(mask, q, k)
        return (horizontal_routing(q @ k.mT, iterations, causal=True),)

    same_with_gradient(in_blocks, whole, q, k)


@pytest.mark.parametrize("length", [BLOCKS_PAY - 1, BLOCKS_PAY, BLOCKS_PAY + 1, 5 * BLOCK, 5 * BLOCK + 1])
def test_both_forms_are_equal_at_the_length_that_chooses(length):
    q, k, mask = factors(2, 2, length, 8)
    same_with_gradient(
        lambda q, k: (horizontal_routing(q @ k.mT, 3, causal=True, factors=(q, k), padding_mask=mask),),
        lambda q, k: (horizontal_routing(q @ k.mT, 3, causal=True, padding_mask=mask),),
        q,
        k,
    )


@pytest.mark.parametrize("block, rows", [(2, 3), (3, 2)])
def test_gradients_pass_gradcheck(block, rows):
    q, k, _ = factors(1, 2, 5, 2)
    q.requires_grad_(), k.requires_grad_()
    assert torch.autograd.gradcheck(lambda q, k: causal_routing(q, k, 3, block=block, rows=rows), (q, k))


@pytest.mark.parametrize("scale", [0.0, 1e-15, 50.0, 1e6])
def test_extreme_votes_stay_finite(scale):
    q, k, mask = factors(2, 3, 20, 4, dtype=torch.float32)
    q, k = ((scale * row).requires_grad_() for row in (q, k))
    omega = causal_routing(*zeroed(mask, q, k), 3, block=8, rows=16)
    omega.sum().backward()
    assert (omega.norm(dim=-1) <= 1 + 1e-5).all()
    for tensor in (omega, q.grad, k.grad):
        assert torch.isfinite(tensor).all()
    for gradient in (q.grad, k.grad):
        assert (gradient[mask[:, None].expand(gradient.shape[:3])] == 0).all()


def test_no_tensor_is_larger_than_the_logits():
    """The tensors that are kept for the backward pass have at most 1.15 times the size of those without blocks."""
    length = 8 * BLOCK
    q, k, _ = factors(1, 2, length, BLOCK, dtype=torch.float32)
    logits = 2 * length * length

    def kept(function):
        sizes = {}

        def pack(tensor):
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            function(q.requires_grad_(), k.requires_grad_())
        return sizes.values()

    blocks = kept(lambda q, k: causal_routing(q, k, 3))
    whole = kept(lambda q, k: horizontal_routing(q @ k.mT, 3, causal=True))
    assert max(blocks) <= logits
    assert sum(blocks) <= 1.15 * sum(whole)


def last_tokens(q, k, block):
    """Return the last row of the logits of `q` and `k` `[B, H, L, d]`, and the logits within blocks."""
    whole = (q @ k.mT).tril()
    return whole[:, :, -1:], split_block(whole, block)


@settings(max_examples=40, deadline=None)
@given(
    heads=st.integers(1, 4),
    length=st.integers(1, 30),
    iterations=st.integers(1, 4),
    block=st.integers(1, 12),
    complete=st.booleans(),
    size=st.sampled_from([0.0, 1.0, 20.0]),
    scale=st.sampled_from([1.0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_the_last_token_equals_that_of_the_whole_sentence(
    heads, length, iterations, block, complete, size, scale, seed
):
    q, k, mask = factors(2, heads, length, 3, seed)
    q, k = zeroed(mask, size * q, k)
    row, logits = last_tokens(q, k, block)
    whole = horizontal_routing(q @ k.mT, iterations, causal=True)[:, :, -1:]
    if complete and length > block:  # zeros after the last position change nothing
        q, k, logits = (torch.nn.functional.pad(rows, (0, 0, 0, -length % block)) for rows in (q, k, logits))
    last = route_last_token(row, q / scale, k, logits, iterations, scale=scale)
    torch.testing.assert_close(last - row, whole, rtol=0, atol=1e-12)
    if length <= block:
        assert torch.equal(route_last_token(row, None, None, logits, iterations, scale=scale), last)
        return
    with pytest.raises(ValueError, match=f"{length if not complete else logits.size(2)} positions in blocks of"):
        route_last_token(row, None, None, logits, iterations, scale=scale)


@given(length=st.integers(1, 20), block=st.integers(1, 22))
def test_kept_logits_are_those_of_the_blocks(length, block):
    q, k, _ = factors(1, 2, length, 3, padded=False)
    whole = (q @ k.mT).tril()
    kept = None
    for t in range(length):
        kept = append_to_block(kept, whole[:, :, t : t + 1, : t + 1])
    assert kept.size(3) >= length
    torch.testing.assert_close(kept, torch.nn.functional.pad(whole, (0, kept.size(3) - length)), rtol=0, atol=0)
    split = split_block(kept, block)
    assert split.shape == (1, 2, length, block)
    for t in range(length):
        start = t - t % block
        inside = whole[:, :, t, start : start + block]
        assert torch.equal(split[:, :, t, : inside.size(2)], inside)
        assert not split[:, :, t, inside.size(2) :].any()
        row = whole[:, :, t : t + 1, : t + 1]
        assert torch.equal(in_own_block(row, block), row[..., start:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_routed_in_float32(dtype):
    q, k, _ = factors(2, 2, BLOCKS_PAY, 8, dtype=dtype)
    logits = q @ k.mT
    whole = horizontal_routing(logits, 3, causal=True, factors=(q, k))
    assert whole.dtype == dtype
    torch.testing.assert_close(whole, causal_routing(q.float(), k.float(), 3).to(dtype))
    row, kept = last_tokens(q, k, BLOCK)
    last = route_last_token(row, q, k, kept, 3)
    assert last.dtype == dtype
    in_float32 = route_last_token(row.float(), q.float(), k.float(), kept.float(), 3)
    torch.testing.assert_close(last, in_float32.to(dtype))


def test_zero_iterations_are_refused():
    q, k, _ = factors(1, 2, 3, 2)
    row, kept = last_tokens(q, k, 2)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        route_last_token(row, q, k, kept, 0)
