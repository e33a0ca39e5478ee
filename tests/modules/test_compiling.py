"""Compiled routing has the results and gradients of the routing as it is."""

import pytest
import torch

from capsule_routing.functions import compiled
from capsule_routing.modules import AttentionRouting, GuidedDynamicRouting, compile_routing


@pytest.fixture(autouse=True)
def without_code(monkeypatch):
    """Compile each function to one graph, of which no code is generated."""
    compile_ = torch.compile
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    monkeypatch.setattr(torch, "compile", lambda function, **options: compile_(function, fullgraph=True, **options))
    compiled.compiled_form.cache_clear()
    yield
    compiled.compiled_form.cache_clear()


def attention(length, mask, **options):
    routing = AttentionRouting(4, **options).double()
    inputs = torch.randn(2, 4, length, length, dtype=torch.float64, requires_grad=True)
    return routing, [inputs], lambda: routing(inputs, mask)


def guided(length, mask):
    routing = GuidedDynamicRouting(6, 5, 4, 3).double()
    source = torch.randn(2, length, 6, dtype=torch.float64, requires_grad=True)
    state = torch.randn(2, 7, 5, dtype=torch.float64, requires_grad=True)
    return routing, [source, state], lambda: routing(source, state, mask).capsules


CASES = {
    "encoder": attention,
    "decoder": lambda length, mask: attention(length, mask, vertical=False, causal=True),
    "guided": guided,
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_equal(name):
    torch.manual_seed(1)
    for length in (5, 9):
        mask = torch.zeros(2, length, dtype=torch.bool)
        mask[1, -2:] = True
        routing, inputs, run = CASES[name](length, mask)
        for parameter in routing.parameters():
            torch.nn.init.normal_(parameter)
        wanted = with_gradients(run, [*inputs, *routing.parameters()])
        compile_routing(routing)
        found = with_gradients(run, [*inputs, *routing.parameters()])
        for got, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)
    assert compiled.compiled_form.cache_info().misses


def with_gradients(run, inputs):
    result = run()
    weights = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).view_as(result)
    return result, *torch.autograd.grad((result * weights).sum(), inputs)


def test_without_gradients_nothing_is_compiled():
    for routing, _, run in (attention(5, None), guided(5, None)):
        compile_routing(routing)
        with torch.no_grad():
            run()
    assert not compiled.compiled_form.cache_info().misses
