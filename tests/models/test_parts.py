"""Mechanisms of another package with a decoder part: what it prepares of a source, and what it keeps between steps."""

from dataclasses import dataclass

import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.incremental_decoding_utils import with_incremental_state
from torch import nn

from fairseq_capsule import extending
from fairseq_capsule.mechanisms import Mechanism, base
from fairseq_capsule.testing import INVARIANTS, build_small
from fairseq_capsule.testing.invariants import check_steps


@dataclass
class MemoryConfig(FairseqDataclass):
    memory: bool = False


class Memory(Mechanism):
    """Adds a dot-product attention to the source, whose keys and values are prepared."""

    name, summary, options, preset, on = "memory", "an example", MemoryConfig, "memory", {"memory": True}

    def decoder(self, config, sizes):
        return nn.ModuleDict({"key": nn.Linear(sizes.source, sizes.target), "query": nn.Linear(*[sizes.target] * 2)})

    def prepare(self, part, source):
        return part["key"](source.states), source.padding_mask

    def run_decoder(self, part, target, source, prepared):
        keys, padding_mask = prepared
        assert len(keys) == len(target.states) == len(source.states)
        logits = (part["query"](target.states) @ keys.mT).masked_fill(padding_mask[:, None], -1e4)
        weights = logits.softmax(-1)
        return target._replace(states=target.states + weights @ keys).with_output(self.name, weights)


@dataclass
class RunningMeanConfig(FairseqDataclass):
    running_mean: bool = False


@with_incremental_state
class RunningSum(nn.Module):
    """Adds the weighted sum of the states so far, which it keeps while decoding."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, states, incremental_state):
        total = states.cumsum(1)
        if incremental_state is not None:
            kept = self.get_incremental_state(incremental_state, "total")
            total = total if kept is None else kept["total"] + states
            self.set_incremental_state(incremental_state, "total", {"total": total})
        return states + self.weight * total

    def reorder_incremental_state(self, incremental_state, new_order):
        kept = self.get_incremental_state(incremental_state, "total")
        if kept is not None:
            self.set_incremental_state(incremental_state, "total", {"total": kept["total"][new_order]})


class RunningMean(Mechanism):
    name, summary, options, preset = "running_mean", "an example", RunningMeanConfig, "running_mean"
    on = {"running_mean": True}

    def decoder(self, config, sizes):
        return RunningSum()

    def run_decoder(self, part, target, source, prepared):
        return target._replace(states=part(target.states, target.incremental_state))


@pytest.fixture(scope="module", autouse=True)
def registered():
    before = list(base._REGISTRY)
    for mechanism in (Memory(), RunningMean()):
        extending.add_mechanism(mechanism)
    yield
    base._REGISTRY[:] = before


@pytest.mark.parametrize("arch", ["memory_transformer_tiny", "running_mean_lstm"])
@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_they_keep_the_invariants(arch, invariant):
    invariant(arch)


@pytest.mark.parametrize("hint", [1, 3])
def test_decoding_with_any_beam_size_equals_one_pass(hint):
    check_steps("memory_lstm", beam_size=hint)


def test_the_outputs_of_a_step_have_a_row_for_each_hypothesis():
    model = build_small("memory_transformer_tiny")
    model.set_beam_size(3)
    with torch.no_grad():
        encoded = model.encoder(torch.tensor([[4, 5, 2], [6, 7, 2]]), torch.tensor([3, 3]))
        encoded = model.encoder.reorder_encoder_out(encoded, torch.arange(2).repeat_interleave(3))
        tokens = torch.tensor([[2], [4], [5], [6], [7], [8]])
        _, extra = model.decoder(tokens, encoder_out=encoded, incremental_state={})
        _, expected = model.decoder(tokens, encoder_out=encoded)
    torch.testing.assert_close(extra["memory"], expected["memory"])
