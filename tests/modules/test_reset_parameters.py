"""A module that comes from the meta device is initialised as its `__init__` does it."""

import pytest
import torch

from capsule_routing import modules
from capsule_routing.modules.lstm import AttentiveLSTMLayer


def context(routing, **options):
    sizes = {"capsules_per_content": 2, "content_dim": 64, "state_dim": 48, "ffn_dim": 32}
    return modules.HolisticContext(routing, **sizes, **options)


MODULES = {
    "attention_routing": lambda: modules.AttentionRouting(8),
    "query_key_norm": lambda: modules.QueryKeyNorm(8),
    "aggregation": lambda: modules.CapsuleAggregation(24, 6),
    "attentive_lstm": lambda: AttentiveLSTMLayer(400),
    "gdr": lambda: context(modules.GuidedDynamicRouting(40, 48, 6, 600), heads="both"),
    "gdr_once": lambda: context(modules.GuidedDynamicRouting(40, 48, 6, 32, iterations=1)),
    "clf": lambda: context(modules.PastFutureClassifier(40, 48, 64, 32)),
    "attn": lambda: context(modules.PastFutureAttention(40, 48, 64)),
    "gret": lambda: modules.GlobalRepresentation(48, [modules.CapsulePooling(48, 4) for _ in range(2)]),
    "mean": lambda: modules.GlobalRepresentation(48, [modules.MeanPooling(48)], aggregate=False),
    "gate": lambda: modules.ContextGate(48),
}


def reset(module):
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_meta_device_starts_as_one_that_was_built(name):
    torch.manual_seed(1)
    built = MODULES[name]()
    with torch.device("meta"):
        module = MODULES[name]()
    module.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(torch.nan)
    module.apply(reset)
    for (key, ours), theirs in zip(module.named_parameters(), built.parameters(), strict=True):
        assert torch.isfinite(ours).all(), key
        if theirs.eq(theirs.flatten()[0]).all():  # a constant
            assert torch.equal(ours, theirs), key
        else:
            uncertain = 6 / theirs.numel() ** 0.5
            assert abs(ours.mean() - theirs.mean()) < uncertain * theirs.std(), key
            assert abs(ours.std() / theirs.std() - 1) < uncertain, key
            assert 0.5 < ours.abs().max() / theirs.abs().max() < 2, key
