"""The losses of a mechanism of another package: their weights are options of the model, beside those of the package."""

from dataclasses import dataclass

import pytest
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics

from capsule_routing.errors import UserError
from fairseq_capsule.criterions import RoutingLossesCriterion
from fairseq_capsule.criterions.routing_losses import RoutingLossesConfig
from fairseq_capsule.mechanisms import Loss, Mechanism, register_mechanism, registry
from tests.zoo import LENGTHS, build, make_batch, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))


@dataclass
class LengthConfig(FairseqDataclass):
    mean_length: bool = False


class MeanLength(Mechanism):
    name = "mean_length"
    summary = "an example of a loss without parameters"
    options = LengthConfig
    on = {"mean_length": True}
    loss_weights = {"mean_length": 1.0}
    needs_logits = True

    def losses(self, model, net_output, sample, weights, options):
        return {"mean_length": Loss(net_output[0].square().mean(), len(sample["target"]), unit=2.0)}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", list(registry._REGISTRY))
    register_mechanism(MeanLength())


def make_model(arch="capsule_transformer"):
    model = build(arch)
    model.cfg.mean_length = True
    return model


def make(**options):
    config = RoutingLossesConfig(sentence_avg=False, label_smoothing=0.1, **options)
    return RoutingLossesCriterion.build_criterion(config, make_task())


def test_the_weight_is_an_option_of_the_criterion():
    criterions = [make(loss_weights=f"mean_length:{weight}") for weight in (0, 2.5)]
    (plain, *_), (loss, _, log) = (criterion(make_model(), BATCH) for criterion in criterions)
    torch.testing.assert_close(loss, plain + 2.5 * 2 * log["mean_length_loss"])
    assert log["mean_length_count"] == len(LENGTHS)
    with metrics.aggregate() as aggregated:
        RoutingLossesCriterion.reduce_metrics([log, log])
    logged = aggregated.get_smoothed_values()["mean_length_loss"]
    assert logged == pytest.approx(log["mean_length_loss"].item() / len(LENGTHS), abs=1e-3)


@pytest.mark.parametrize(
    "weights, message",
    [
        ("mean_length:nan", "--loss-weights mean_length:nan: 'nan' is no number from 0 on; write mean_length:0.5"),
        ("mean_length:a", "--loss-weights mean_length:a: 'a' is no number from 0 on; write mean_length:0.5"),
        ("bow:1", "--loss-weights bow:1: no mechanism of another package has a loss bow; there are mean_length"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(UserError, match=f"^{message}$"):
        make(loss_weights=weights)


def test_losses_of_two_mechanisms_add_up():
    model, criterion = make_model("gdr_transformer_base"), make()
    criterion.attach(model)
    assert {"bow_loss", "bca_loss", "mean_length_loss"} <= criterion(model, BATCH)[2].keys()


def test_a_weight_of_a_loss_that_the_model_does_not_have_is_refused():
    criterion = make(loss_weights="mean_length:0.5", bow_weight=0, bca_weight=0)
    with pytest.raises(UserError, match="^--loss-weights mean_length:0.5 needs a model with this loss; leave it out$"):
        criterion.attach(build("capsule_transformer"))
