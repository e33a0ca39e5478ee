"""Functions and modules of others in float32, whatever the precision of the model."""

import pytest
import torch
from torch import nn

from capsule_routing.functions import InFloat32, in_float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_module_runs_in_float32_with_its_parameters(dtype):
    torch.manual_seed(1)
    inner = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
    module, states = InFloat32(inner).to(dtype), torch.randn(5, 4, dtype=dtype, requires_grad=True)
    seen = []
    inner.register_forward_pre_hook(lambda module, inputs: seen.extend([inputs[0].dtype, module[0].weight.dtype]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = module(states)
    result.sum().backward()
    assert seen == [torch.float32] * 2
    exact = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
    exact.load_state_dict(inner.state_dict())
    expected = exact(states.detach().float())
    expected.sum().backward()
    assert result.dtype == states.grad.dtype == dtype
    torch.testing.assert_close(result, expected.to(dtype))
    for got, want in zip(module.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(got.grad, want.grad.to(dtype))


def test_a_module_of_tokens_returns_the_precision_of_its_parameters():
    module = InFloat32(nn.Embedding(5, 2)).bfloat16()
    assert module(input=torch.tensor([1, 2])).dtype == torch.bfloat16


def test_whole_numbers_do_not_decide_the_precision_of_the_result():
    half = torch.randn(2).bfloat16()
    result, tokens = in_float32(lambda tokens, states: (states, tokens))(torch.tensor([1, 2]), half)
    assert torch.equal(result, half) and tokens.dtype == torch.int64
