import pytest
import torch

from capsule_routing.functions import additive_scores, guided, squared_exponential


def plain(left, right, vectors):
    return torch.tanh(left.unsqueeze(2) + right.unsqueeze(1)) @ vectors.t()


def arguments(batch=2, left=3, right=5, groups=2, size=4, rows=3, dtype=torch.float64, scale=1.0):
    torch.manual_seed(1)
    shapes = (batch, left, groups, size), (batch, right, groups, size), (rows, size)
    return [(scale * torch.randn(shape, dtype=dtype)).requires_grad_() for shape in shapes]


def gradients(function, inputs):
    scores = function(*inputs)
    torch.manual_seed(2)
    return scores, torch.autograd.grad((scores * torch.randn(scores.shape, dtype=scores.dtype)).sum(), inputs)


@pytest.mark.parametrize("block", [1, 10**6])
@pytest.mark.parametrize("rows", [1, 3])
def test_scores_equal_the_plain_expression(block, rows, monkeypatch):
    monkeypatch.setitem(guided.BLOCK, "cpu", block)
    inputs = arguments(rows=rows)
    for got, want in zip(gradients(additive_scores, inputs), gradients(plain, inputs), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("scale", [15.0, 1000.0])
def test_large_inputs_in_float32_are_finite(scale):
    inputs = arguments(dtype=torch.float32, scale=scale)
    scores, grads = gradients(additive_scores, inputs)
    assert torch.isfinite(scores).all() and all(torch.isfinite(gradient).all() for gradient in grads)
    if scale < 1000:
        torch.testing.assert_close(scores, plain(*inputs), rtol=1e-4, atol=1e-4 * scale)


def test_right_parts_may_be_left_out_if_they_need_no_gradient():
    left, right, vectors = arguments()
    exponential = squared_exponential(right)
    with torch.no_grad():
        assert torch.equal(additive_scores(left, None, vectors, exponential), additive_scores(left, right, vectors))
    found = gradients(lambda a, u: additive_scores(a, None, u, exponential), [left, vectors])
    expected = gradients(lambda a, u: additive_scores(a, right.detach(), u), [left, vectors])
    assert torch.equal(found[0], expected[0])
    for got, want in zip(found[1], expected[1], strict=True):
        assert torch.equal(got, want)


def test_one_left_part_can_serve_all_groups():
    left, right, vectors = arguments()
    one = left[:, :, :1].detach().requires_grad_()
    for got, want in zip(
        gradients(additive_scores, [one, right, vectors]),
        gradients(lambda a, b, u: plain(a.expand(-1, -1, 2, -1), b, u), [one, right, vectors]),
        strict=True,
    ):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_close_to_float32(dtype):
    inputs = [tensor.detach().to(dtype) for tensor in arguments()]
    scores = additive_scores(*inputs)
    assert scores.dtype == dtype
    torch.testing.assert_close(scores.float(), plain(*(tensor.float() for tensor in inputs)), rtol=0.02, atol=0.02)


def test_no_tensor_of_the_size_of_the_pairs_is_kept():
    left, right, vectors = arguments(left=20, right=30)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        additive_scores(left, right, vectors)
    assert sum(tensor.numel() for tensor in kept) <= left.numel() + right.numel() + vectors.numel()
