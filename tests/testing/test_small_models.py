"""The small models of the tests: what is built, and the errors."""

from argparse import Namespace
from dataclasses import dataclass

import pytest
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from fairseq.dataclass import FairseqDataclass

from fairseq_capsule.criterions.guided_losses import NAME as GUIDED
from fairseq_capsule.criterions.guided_losses import GuidedLossesConfig
from fairseq_capsule.errors import UserError
from fairseq_capsule.models import Mechanism, mechanism
from fairseq_capsule.testing import INVARIANTS
from fairseq_capsule.testing.small_models import criterion_of


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_an_architecture_that_is_not_registered_is_named(invariant):
    message = "^unknown architecture mine_transformer_tiny; import the package that defines it$"
    with pytest.raises(UserError, match=message):
        invariant("mine_transformer_tiny")


class Balanced(Mechanism):
    name = "balanced"
    options = FairseqDataclass
    off = {"balanced": False}

    def losses(self, config):
        return {"balance_weight": 0.1}


@dataclass
class BalanceConfig(LabelSmoothedCrossEntropyCriterionConfig):
    balance_weight: float = 1.0


@dataclass
class BothConfig(BalanceConfig, GuidedLossesConfig):
    pass


@pytest.mark.parametrize(
    "options, criterion, losses",
    [
        ({"balanced": False}, GUIDED, {"bow_weight": 1.0, "bca_weight": 1.0}),
        ({"guided_heads": "none"}, "balance", {"balance_weight": 0.1}),
        ({}, GUIDED, {"bow_weight": 1.0, "bca_weight": 1.0}),  # neither criterion computes all three
        ({"criterion": "both"}, "both", {"bow_weight": 1.0, "bca_weight": 1.0, "balance_weight": 0.1}),
        ({"balanced": False, "guided_heads": "none"}, "label_smoothed_cross_entropy", {}),
    ],
)
def test_the_criterion_computes_most_losses_of_two_mechanisms(monkeypatch, options, criterion, losses):
    monkeypatch.setitem(mechanism._REGISTRY, "balanced", Balanced())
    monkeypatch.setattr(Balanced, "criterion", options.pop("criterion", "balance"))
    monkeypatch.setitem(CRITERION_DATACLASS_REGISTRY, "balance", BalanceConfig)
    monkeypatch.setitem(CRITERION_DATACLASS_REGISTRY, "both", BothConfig)
    config = {"past_future": "gdr", "guided_heads": "both", "balanced": True, **options}
    assert criterion_of(Namespace(cfg=Namespace(**config))) == (criterion, losses)
