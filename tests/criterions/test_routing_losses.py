"""Criterions of a plugin: their weights, and losses of two mechanisms in one criterion."""

import math
from dataclasses import dataclass

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig

from fairseq_capsule.criterions import GuidedLossesCriterion, LoggedLoss, RoutingLossesCriterion
from fairseq_capsule.criterions.guided_losses import GuidedLossesConfig
from fairseq_capsule.errors import UserError
from tests.zoo import LENGTHS, build, make_batch, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))


@dataclass
class LengthConfig(LabelSmoothedCrossEntropyCriterionConfig):
    mean_length_weight: float = 1.0


class LengthCriterion(RoutingLossesCriterion):
    logged = {"mean_length": LoggedLoss("nsentences", 1.0)}

    def routing_losses(self, model, net_output, sample):
        return {"mean_length": net_output[0].square().mean()}


@dataclass
class BothConfig(LengthConfig, GuidedLossesConfig):
    pass


class BothCriterion(GuidedLossesCriterion, LengthCriterion):
    logged = {**GuidedLossesCriterion.logged, **LengthCriterion.logged}

    def routing_losses(self, model, net_output, sample):
        guided = GuidedLossesCriterion.routing_losses(self, model, net_output, sample)
        return {**guided, **LengthCriterion.routing_losses(self, model, net_output, sample)}


def make(kind, config, **options):
    return kind.build_criterion(config(sentence_avg=False, label_smoothing=0.1, **options), make_task())


def test_the_weights_are_options():
    model = build("capsule_transformer")
    plain, weighted = (make(LengthCriterion, LengthConfig, mean_length_weight=weight) for weight in (0, 2.5))
    log = weighted(model, BATCH)[2]
    torch.testing.assert_close(weighted(model, BATCH)[0], plain(model, BATCH)[0] + 2.5 * log["mean_length_loss"])


@pytest.mark.parametrize("weight", [-1, math.nan])
def test_a_negative_weight_is_refused(weight):
    with pytest.raises(UserError, match=f"^--mean-length-weight must be at least 0, not {weight}$"):
        make(LengthCriterion, LengthConfig, mean_length_weight=weight)


def test_a_criterion_can_add_a_loss_to_the_guided_losses():
    model, both = build("gdr_transformer_base"), make(BothCriterion, BothConfig)
    both.attach(model)
    assert {"bow_loss", "bca_loss", "mean_length_loss"} <= both(model, BATCH)[2].keys()


def test_an_added_loss_needs_no_guided_head():
    model, both = build("capsule_transformer"), make(BothCriterion, BothConfig, bow_weight=0, bca_weight=0)
    both.attach(model)
    log = both(model, BATCH)[2]
    assert "mean_length_loss" in log and "bow_loss" not in log
