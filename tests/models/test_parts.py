"""A mechanism of another package whose decoder part keeps something between the steps of decoding.

examples/k_means_routing prepares something of a source, and has its tests in tests/integration/test_examples.py.
"""

from dataclasses import dataclass

import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.incremental_decoding_utils import with_incremental_state
from torch import nn

from fairseq_capsule import extending
from fairseq_capsule.mechanisms import Mechanism, Source, registry
from fairseq_capsule.models.parts import _first_rows
from fairseq_capsule.testing import INVARIANTS


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

    def run_decoder(self, part, target, source, kept):
        return target._replace(states=part(target.states, target.incremental_state))


@pytest.fixture(scope="module", autouse=True)
def registered():
    before = list(registry._REGISTRY)
    extending.add_mechanism(RunningMean())
    yield
    registry._REGISTRY[:] = before


@pytest.mark.parametrize("arch", ["running_mean_transformer_tiny", "running_mean_lstm"])
@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_it_keeps_the_invariants(arch, invariant):
    invariant(arch)


def test_a_part_reads_one_row_of_each_sentence_for_its_beams():
    rows = torch.arange(6)
    source = Source(rows[:, None, None], rows[:, None] > 3, vectors={"of_sentence": rows[:, None]})
    states, mask, _, vectors = _first_rows(source, beams=3)
    assert states.flatten().tolist() == vectors["of_sentence"].flatten().tolist() == [0, 3]
    assert mask.flatten().tolist() == [False, False]
