"""`check_on_changes_logits` refuses mechanisms of each place that compute nothing of their own."""

from dataclasses import dataclass

import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from torch import nn

from fairseq_capsule import extending
from fairseq_capsule.mechanisms import Mechanism, registry
from fairseq_capsule.testing import check_on_changes_logits


class Scaled(nn.Module):
    """Scales logits; it ignores its shift."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.ones(())) for _ in range(2))

    def forward(self, logits, padding_mask, factors):
        return logits * self.scale


class Unchanged(nn.Module):
    def forward(self, logits, padding_mask, factors):
        return logits


class Projected(nn.Linear):
    """`W_O` again, as a part."""

    def forward(self, heads):
        return super().forward(heads.flatten(2))


class Squared(Projected):
    def forward(self, heads):
        return super().forward(heads.square())


class Constant(Projected):
    """It has an effect, and reads nothing."""

    def forward(self, heads):
        return self.bias.expand(*heads.shape[:2], -1) + self.weight.sum()


class Added(nn.Linear):
    """Adds to the states of a decoder; it ignores its bias."""

    def forward(self, states):
        return states + states.tanh() @ self.weight


@dataclass
class EffectConfig(FairseqDataclass):
    effect: bool = False


class Effect(Mechanism):
    name, summary, options = "effect", "an example", EffectConfig
    preset, on = "effect", {"effect": True}

    def run_decoder(self, part, target, source, kept):
        return target._replace(states=part(target.states))


def check(monkeypatch, place, kind):
    def make(config, _):
        size = config.decoder_embed_dim or config.encoder_embed_dim
        part = kind(size, size) if issubclass(kind, nn.Linear) else kind()
        return part if place == "decoder" else {place: part}

    monkeypatch.setattr(registry, "_REGISTRY", list(registry._REGISTRY))
    hook = "decoder" if place == "decoder" else "attention"
    mechanism = type("Effect", (Effect,), {hook: lambda self, *arguments: make(*arguments)})
    extending.add_mechanism(mechanism())
    check_on_changes_logits("effect_transformer_tiny")


@pytest.mark.parametrize(
    "place, kind, message",
    [
        ("logits", Unchanged, "effect has no effect"),
        ("logits", Scaled, r"effect: parameters of Scaled have no effect: \['shift'\]"),
        ("heads", Projected, "effect combines the heads as `W_O` can"),
        ("heads", Constant, "effect: parameters of Constant have no effect"),
        ("decoder", Added, r"effect: parameters of Added have no effect: \['bias'\]"),
    ],
)
def test_a_mechanism_without_an_effect_of_its_own_is_refused(monkeypatch, place, kind, message):
    with pytest.raises(AssertionError, match=message):
        check(monkeypatch, place, kind)


def test_a_part_that_is_no_map_of_the_heads_passes(monkeypatch):
    check(monkeypatch, "heads", Squared)
