"""The routing functions under `torch.compile` and `torch.func`."""

import pytest
import torch

from capsule_routing import functions as routing

FUNCTIONS = {
    "squash": routing.squash,
    "dynamic": lambda votes, mask: routing.dynamic_routing(votes, 3, padding_mask=mask),
    "vertical": lambda logits, mask: routing.vertical_routing(logits, 3, padding_mask=mask),
    "horizontal": lambda logits, mask: routing.horizontal_routing(logits, 3, padding_mask=mask),
    "causal": lambda logits, mask: routing.horizontal_routing(logits, 3, padding_mask=mask, causal=True),
}


def inputs(name, dtype=torch.float32):
    torch.manual_seed(1)
    tensor = torch.randn((2, 5, 3, 4) if name == "dynamic" else (2, 3, 5, 5), dtype=dtype, requires_grad=True)
    mask = torch.tensor([[False] * 5, [False, False, False, True, True]])
    return (tensor,) if name == "squash" else (tensor, mask)


def with_gradient(function, arguments):
    results = function(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    return *results, *torch.autograd.grad(sum(part.square().sum() for part in results), arguments[0])


@pytest.mark.parametrize("name, dtype", [*((name, torch.float32) for name in FUNCTIONS), ("dynamic", torch.bfloat16)])
def test_a_compiled_function_is_one_graph(name, dtype):
    """Torch raises an error where it would have to break the graph."""
    compiled = torch.compile(FUNCTIONS[name], fullgraph=True, backend="aot_eager")
    expected = with_gradient(FUNCTIONS[name], inputs(name, dtype))
    for got, want in zip(with_gradient(compiled, inputs(name, dtype)), expected, strict=True):
        torch.testing.assert_close(got, want)


def test_torch_func_differentiates_and_maps_dynamic_routing():
    votes = torch.randn(2, 5, 3, 4, dtype=torch.float64)

    def capsules(votes):
        return routing.dynamic_routing(votes, 3).capsules

    torch.testing.assert_close(torch.func.vmap(capsules)(votes), capsules(votes))
    jacobian = torch.func.vmap(torch.func.jacrev(capsules))(votes)  # [2, N, D, M, N, D]
    expected = torch.autograd.functional.jacobian(lambda votes: capsules(votes).sum(0), votes)
    torch.testing.assert_close(jacobian, expected.movedim(2, 0))
