"""Mechanisms that do not keep what they declare are found, each by one invariant."""

from dataclasses import dataclass

import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from torch import nn

from fairseq_capsule import extending, inspection
from fairseq_capsule.inspection import Inspection, mean_where, named
from fairseq_capsule.mechanisms import Mechanism, registry
from fairseq_capsule.testing.inspection import check_inspection
from fairseq_capsule.testing.invariants import check_translations
from fairseq_capsule.testing.promises import check_iterations, check_pickling, check_start, check_statistics

ARCH = "promise_transformer_tiny"
PROMISES = [check_start, check_statistics, check_iterations, check_pickling, check_inspection]


@dataclass
class PromiseConfig(FairseqDataclass):
    promise: bool = False
    promise_iterations: int = 3


class Added(nn.Linear):
    """Adds `iterations · W tanh(z)` to the decoder's states; `W` starts at 0."""

    def __init__(self, size, iterations, start=0.0):
        super().__init__(size, size, bias=False)
        self.factor = iterations
        nn.init.constant_(self.weight, start)

    def forward(self, states):
        return states + self.factor * super().forward(states.tanh())


class Promise(Mechanism):
    name, summary, options = "promise", "an example", PromiseConfig
    preset, on, iterations, starts_as_baseline = "promise", {"promise": True}, "promise_iterations", True

    def decoder(self, config, sizes):
        return Added(sizes.target, config.promise_iterations)

    def run_decoder(self, part, target, source, kept):
        return target._replace(states=part(target.states))


class NotZero(Promise):
    def decoder(self, config, sizes):
        return Added(sizes.target, config.promise_iterations, start=0.1)


class OnceOnly(Promise):
    def decoder(self, config, sizes):
        return Added(sizes.target, 1)


class WithFunction(Promise):
    def decoder(self, config, sizes):
        part = super().decoder(config, sizes)
        part.norm = lambda states: states.norm()
        return part


class Shown(Inspection):
    """The length of a word's vector, as a statistic and as an array."""

    def statistics(self, model, source, previous):
        lengths = model.decoder.embed_tokens(previous).norm(dim=-1)
        return {"length": mean_where(lengths, previous.ne(1))}

    def arrays(self, model, sentence):
        lengths = model.decoder.embed_tokens(sentence.previous).norm(dim=-1)
        return {"lengths": named(lengths[0], target=sentence.target_words)} if hasattr(model.decoder, "promise") else {}


class CountsPadding(Shown):
    def statistics(self, model, source, previous):
        lengths = model.decoder.embed_tokens(previous).norm(dim=-1)
        return {"length": mean_where(lengths, torch.ones_like(previous).bool())}


class NotFinite(Shown):
    def statistics(self, model, source, previous):
        return {"length": mean_where(previous.float().sub(9).log(), previous.ne(1))}


class WithHoles(Shown):
    def arrays(self, model, sentence):
        arrays = super().arrays(model, sentence)
        for array in arrays.values():
            array.values[0] = float("nan")
        return arrays


@pytest.fixture
def registered(monkeypatch):
    """A function that registers a mechanism, and what is shown of it, during a test."""

    def register(mechanism, shown):
        monkeypatch.setattr(registry, "_REGISTRY", list(registry._REGISTRY))
        monkeypatch.setattr(inspection, "INSPECTIONS", dict(inspection.INSPECTIONS))
        extending.add_mechanism(mechanism(), shown())

    return register


@pytest.mark.parametrize(
    "invariant, mechanism, shown, message",
    [
        (check_start, NotZero, Shown, "promise: a new model is not its baseline"),
        (check_iterations, OnceOnly, Shown, "promise: the option promise_iterations has no effect"),
        (check_pickling, WithFunction, Shown, "promise: Added cannot be pickled: .*lambda"),
        (check_statistics, Promise, CountsPadding, "promise_length is .* in a padded batch, but .* for its sentences"),
        (check_statistics, Promise, NotFinite, "promise_length is not finite"),
        (check_inspection, Promise, WithHoles, "array lengths has numbers that are not finite"),
    ],
)
def test_a_broken_promise_is_found(registered, invariant, mechanism, shown, message):
    registered(mechanism, shown)
    for check in PROMISES:
        if check is not invariant:
            check(ARCH)
    with pytest.raises(AssertionError, match=message):
        invariant(ARCH)


@pytest.mark.parametrize("difference, equal", [(1e-7, True), (0.1, False)])
def test_hypotheses_with_equal_scores_may_exchange_their_ranks(monkeypatch, difference, equal):
    """The stand-in for a generator ranks two hypotheses differently in a batch and alone."""
    scores = torch.tensor([-1.0, -1.0 - difference])

    class Generator:
        def generate(self, models, batch):
            order = [4, 5] if len(batch["id"]) == 1 else [5, 4]
            hypotheses = [{"tokens": torch.tensor([word, 2]), "score": score} for word, score in zip(order, scores)]
            return [hypotheses] * len(batch["id"])

    monkeypatch.setattr("fairseq_capsule.testing.invariants._generator", lambda model: Generator())
    if equal:
        check_translations("capsule_transformer_tiny")
        return
    with pytest.raises(AssertionError, match=r"rank 1 depends on the batch: \[5, 2\] in a batch, \[4, 2\] alone"):
        check_translations("capsule_transformer_tiny")
