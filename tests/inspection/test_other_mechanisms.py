"""A mechanism of another package in front of the package's own: what is shown is what the model computed."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from torch import nn

from capsule_routing.errors import UserError
from capsule_routing.modules import CapsulePooling, ContextGate
from fairseq_capsule import extending
from fairseq_capsule.inspection import Sentence, gather_arrays, gather_statistics
from fairseq_capsule.mechanisms import Mechanism, registry
from fairseq_capsule_lab.analysis.iterations import routing_option
from tests.zoo import build, logits_of, make_batch, make_sentences

SENTENCE = make_sentences([(6, 4)])[0]
WORDS = [tuple(map(str, SENTENCE[side].tolist())) for side in ("source", "target")]
GRET = {"global_representation": "capsule"}


@dataclass
class ScaledConfig(FairseqDataclass):
    scaled: bool = False
    scaled_iterations: int = 2


class Scales(nn.Module):
    """Halves the states once in each iteration, in a loop of its own: it has no attribute `iterations`."""

    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def forward(self, states):
        return states / 2**self.rounds


class Scaled(Mechanism):
    name, summary, options = "scaled", "an example", ScaledConfig
    preset, on, iterations = "scaled", {"scaled": True}, "scaled_iterations"

    def encoder(self, config, sizes):
        return Scales(config.scaled_iterations)

    def run_encoder(self, part, source):
        return source._replace(states=part(source.states))

    def decoder(self, config, sizes):
        return Scales(config.scaled_iterations)

    def run_decoder(self, part, target, source, kept):
        return target._replace(states=part(target.states))


class Halved(Scaled):
    """It removes every second encoder state."""

    def run_encoder(self, part, source):
        return source._replace(states=source.states[:, ::2], padding_mask=source.padding_mask[:, ::2])


class Doubles(nn.Module):
    def forward(self, logits, padding_mask, factors):
        return 2 * logits


class DoubledLogits(Scaled):
    def attention(self, config, place):
        return {"logits": Doubles()} if place.kind == "self" else {}

    encoder, decoder = Mechanism.encoder, Mechanism.decoder


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", list(registry._REGISTRY))


def test_the_gate_and_the_capsules_are_those_of_the_forward_pass(monkeypatch):
    extending.add_mechanism(Scaled(), before="global_representation")
    model = build("scaled_transformer_tiny", GRET)
    batch = make_batch([SENTENCE])
    gates, layers = [], []
    gate, together = ContextGate.gate, CapsulePooling.together

    def recording(poolings, states, padding_mask):
        layers.append(states)
        return together(poolings, states, padding_mask)

    with monkeypatch.context() as recorded:
        recorded.setattr(ContextGate, "gate", lambda *read: gates.append(gate(*read)) or gates[-1])
        recorded.setattr(CapsulePooling, "together", staticmethod(recording))
        logits_of(model, batch)
    arrays = gather_arrays(model, Sentence(SENTENCE["source"][None], SENTENCE["target"][None], *WORDS))
    np.testing.assert_allclose(arrays["global_gate"].values, gates[0][0].detach(), atol=1e-6)
    for number, (pooling, states) in enumerate(zip(model.encoder.global_representation.poolings, layers[0])):
        coupling = pooling.capsules(states).coupling[0].detach()
        np.testing.assert_allclose(arrays["global_coupling"].values[number, -1], coupling, atol=1e-6)
    words = batch["net_input"]
    mean = gather_statistics(model, words["src_tokens"], words["prev_output_tokens"])["global_representation"]["gate"]
    torch.testing.assert_close(mean.total / mean.number, gates[0].mean().detach())


def test_the_masks_are_those_of_logits_that_another_mechanism_changed():
    extending.add_mechanism(DoubledLogits(), before="selective_attention")
    model = build("scaled_transformer_tiny", {"selective_attention": "both"})
    subtracted = {"encoder": [], "decoder": []}
    for side, masks in subtracted.items():
        for layer in getattr(model, side).layers:
            layer.self_attn.selective_attention.register_forward_hook(
                lambda _, logits, changed, masks=masks: masks.append((logits[0] - changed)[0, 0].detach())
            )
    logits_of(model, make_batch([SENTENCE]))
    expected = {side: torch.stack(masks) for side, masks in subtracted.items()}
    arrays = gather_arrays(model, Sentence(SENTENCE["source"][None], SENTENCE["target"][None], *WORDS))
    for side, masks in expected.items():
        np.testing.assert_allclose(arrays[f"{side}_masks"].values, masks, atol=1e-5)


def test_the_iterations_of_any_mechanism_can_be_analysed():
    extending.add_mechanism(Scaled())
    assert routing_option("it", build("scaled_transformer_tiny")) == "scaled_iterations"


def test_a_part_that_changes_the_number_of_states_is_refused_by_name():
    extending.add_mechanism(Halved())
    message = "scaled made 4 encoder states of 7 source words; a mechanism must keep one state for each word"
    with pytest.raises(UserError, match=message):
        logits_of(build("scaled_transformer_tiny"), make_batch([SENTENCE]))
