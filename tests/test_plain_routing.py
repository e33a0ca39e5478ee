"""The routings in plain PyTorch (benchmarks/plain_routing.py), compared with the loops of the papers."""

import plain_routing as plain
import pytest
import torch

from capsule_routing.functions import in_float32
from tests.references import routing as reference
from tests.routing.test_attention_routing import attention_inputs, without_padding
from tests.routing.test_dynamic import masks, same_with_gradient


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("name, options", [("vertical", {}), ("horizontal", {}), ("horizontal", {"causal": True})])
def test_attention_routing_equals_the_loops(name, options, iterations, masked):
    mask = masks((3, 7))[0] if masked else None

    def route(routings, further, q, k):
        q, k = without_padding(mask, q, k)
        result = getattr(routings, f"{name}_routing")(q @ k.mT, iterations, padding_mask=mask, **options, **further)
        return result if isinstance(result, tuple) else (result,)

    def literal(q, k):
        return route(reference, {"key_padding_mask": mask}, q, k)

    same_with_gradient(lambda q, k: route(plain, {}, q, k), literal, *attention_inputs())


@pytest.mark.parametrize("masked", [False, True])
def test_factors_give_the_same_routing(masked):
    mask = masks((3, 7))[0] if masked else None  # 7 keys of rank 2: the factors are used

    def route(factored, q, k):
        q, k = without_padding(mask, q, k)
        factors = (q, k) if factored else None
        return (plain.horizontal_routing(q @ k.mT, 3, padding_mask=mask, factors=factors),)

    same_with_gradient(lambda q, k: route(True, q, k), lambda q, k: route(False, q, k), *attention_inputs())


@pytest.mark.parametrize("masked", [False, True])
def test_dynamic_routing_equals_the_loops(masked):
    mask = masks((2, 5))[0] if masked else None
    votes = torch.randn(2, 5, 3, 4, dtype=torch.float64)

    def literal(votes):
        return reference.dynamic_routing(votes, 3, padding_mask=mask)[:1]

    same_with_gradient(lambda votes: (plain.dynamic_routing(votes, 3, padding_mask=mask),), literal, votes)


def test_votes_of_zero_have_a_gradient_of_zero():
    logits = torch.zeros(1, 2, 3, 3, requires_grad=True)
    (plain.vertical_routing(logits, 3)[0].sum() + plain.horizontal_routing(logits, 3).sum()).backward()
    assert not logits.grad.any()


@pytest.mark.parametrize("function", [plain.vertical_routing, plain.horizontal_routing])
def test_a_routing_is_one_graph(function):
    """Torch raises an error where it would have to break the graph."""
    logits = torch.randn(2, 3, 5, 5, dtype=torch.bfloat16)
    torch.testing.assert_close(plain.compiled(function, "eager")(logits, 3), in_float32(function)(logits, 3))
