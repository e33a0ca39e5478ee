"""Mechanisms that change attentions: logits also have the sum of the rows up to them; queries and keys are scaled."""

from dataclasses import dataclass

import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.modules import MultiheadAttention
from torch import nn

from capsule_routing.modules import AttentionRouting, QueryKeyNorm
from fairseq_capsule import extending
from fairseq_capsule.mechanisms import Mechanism, registry
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.testing import INVARIANTS, build_small


class SumOfRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, logits, padding_mask, factors):
        return logits + self.gain * logits.cumsum(2)


@dataclass
class RunningSumConfig(FairseqDataclass):
    running_sum: bool = False


class RunningSum(Mechanism):
    name = "running_sum"
    summary = "an example that reads the logits of earlier queries"
    options = RunningSumConfig
    preset = "running_sum"
    on = {"running_sum": True}

    def attention(self, config, place):
        return {"logits": SumOfRows()}


class ScaledFactors(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, queries, keys):
        return queries + self.gain * queries.square(), keys - self.gain * keys


@dataclass
class ScaledFactorsConfig(FairseqDataclass):
    scaled_factors: bool = False


class Scaling(Mechanism):
    name = "scaled_factors"
    summary = "an example that changes the queries and keys of all attentions"
    options = ScaledFactorsConfig
    preset = "scaled_factors"
    on = {"scaled_factors": True}

    def attention(self, config, place):
        return {"factors": ScaledFactors()}


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Register them before attention routing, and take them out of the registry at the end."""
    before = list(registry._REGISTRY)
    for mechanism in (RunningSum(), Scaling()):
        extending.add_mechanism(mechanism, before="attention_routing")
    yield
    registry._REGISTRY[:] = before


ROUTING = {"encoder_routing": "both", "decoder_routing": "horizontal"}


@pytest.mark.parametrize("mechanism", ["running_sum", "scaled_factors"])
@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_they_keep_the_invariants_before_routing(invariant, mechanism):
    invariant(f"{mechanism}_transformer_tiny", ROUTING)


def test_it_is_in_all_attentions_in_order():
    model = build_small("running_sum_transformer_tiny", ROUTING)
    for layer in model.decoder.layers:
        assert layer.self_attn.changes_logits == ("running_sum", "routing")
        assert layer.encoder_attn.changes_logits == ("running_sum",)


def test_presets_need_registered_mechanisms():
    with pytest.raises(ValueError, match="presets sum: running_sum is not registered; call add_mechanism first"):
        extending.add_presets("sum", RunningSum())


def test_presets_with_options_that_do_not_exist_or_another_meaning_are_refused():
    with pytest.raises(ValueError, match="presets sum: there is no option runing_sum; correct the name"):
        extending.add_presets("sum", on={"runing_sum": True})
    with pytest.raises(ValueError, match="architecture gdr_transformer_base: it is registered with other options"):
        extending.add_presets("gdr", on={"past_future": "clf"})


@pytest.mark.parametrize("causal", [False, True])
def test_an_attention_with_its_own_logits_is_fused_unless_weights_are_asked_for(causal, monkeypatch):
    """Also for a sentence of padding alone, whose output is finite."""
    torch.manual_seed(1)
    attention = SplitAttention(12, 3)
    attention.attach("selective_attention", "factors", QueryKeyNorm(3))
    x = torch.randn(5, 3, 12, requires_grad=True)
    padded = torch.tensor([[False] * 5, [True] * 2 + [False] * 3, [True] * 5])
    future = torch.full((5, 5), float("-inf")).triu(1) if causal else None
    options = dict(key_padding_mask=padded, attn_mask=future)
    found = []
    for asked in (True, False):
        if not asked:
            monkeypatch.setattr("fairseq_capsule.models.attention.masked_attention", None)
        output, weights = attention(x, need_weights=asked, **options)
        assert (weights is not None) == asked
        found.append([output, *torch.autograd.grad(output[~padded.T].square().sum(), [x, *attention.parameters()])])
    for explicit, fused in zip(*found, strict=True):
        assert fused.isfinite().all()
        torch.testing.assert_close(fused, explicit, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("asked", [True, False])
def test_attention_has_its_dropout_in_training_alone(asked):
    """Also where torch's fused attention computes it."""
    attention, x = SplitAttention(12, 3, dropout=0.5), torch.randn(5, 3, 12)
    for training in (True, False):
        first, second = (attention.train(training)(x, need_weights=asked)[0] for _ in range(2))
        assert torch.equal(first, second) != training


def test_without_parts_it_computes_what_fairseqs_does():
    plain = MultiheadAttention(12, 3, self_attention=True).eval()
    plain.skip_embed_dim_check = True  # its own code, because torch's returns no weights of each head
    attention = SplitAttention(12, 3).eval()
    attention.load_state_dict(plain.state_dict())
    x, padded = torch.randn(5, 2, 12), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    for heads in (False, True):
        want, got = (each(x, x, x, key_padding_mask=padded, need_head_weights=heads) for each in (plain, attention))
        torch.testing.assert_close(got[0][~padded.T], want[0][~padded.T])
        torch.testing.assert_close(got[1][..., ~padded, :], want[1][..., ~padded, :])


def test_steps_with_padding_before_the_first_word_equal_one_pass():
    """The logits that a routing keeps of padding are 0."""
    attention = SplitAttention(12, 3).double()
    attention.attach("attention_routing", "logits", AttentionRouting(3, vertical=False, causal=True))
    x, padded = torch.randn(5, 2, 12).double(), torch.tensor([[True] * 2 + [False] * 3, [False] * 5])
    future = torch.full((5, 5), float("-inf")).triu(1)
    expected, state = attention(x, key_padding_mask=padded, attn_mask=future)[0], {}
    for step in range(5):
        row, _ = attention(x[step : step + 1], key_padding_mask=padded[:, step : step + 1], incremental_state=state)
        torch.testing.assert_close(row[0, ~padded[:, step]], expected[step, ~padded[:, step]])
