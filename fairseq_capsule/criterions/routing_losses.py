"""The base class of criterions that add losses of a mechanism to label-smoothed cross-entropy."""

from dataclasses import dataclass
from typing import Dict, Mapping

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.options import option


@dataclass(frozen=True)
class LoggedLoss:
    """How a loss is logged: its sum, divided by a count and by a unit.

    Attributes:
        count: a key of the logging outputs: "ntokens" (target tokens), "nsentences", or one that the subclass adds.
        unit: the unit of the log in units of the loss: log 2 for a loss in nats that is logged in base 2.
    """

    count: str
    unit: float


class RoutingLossesCriterion(LabelSmoothedCrossEntropyCriterion):
    """`label-smoothed NLL + Σ weight · loss`, all divided by fairseq's sample size.

    A subclass sets `logged` and implements `routing_losses`. Its dataclass has an option `NAME_weight` for each name of
    `logged`; 0 turns the loss off. Each loss is logged as `NAME_loss`, without its weight.

    Attributes:
        weights: the weight of each loss, by its name.

    Raises:
        UserError: a weight is below 0.
    """

    logged: Mapping[str, LoggedLoss] = {}

    def __init__(self, task, cfg):
        super().__init__(task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy)
        self.weights: Dict[str, float] = {name: getattr(cfg, f"{name}_weight") for name in self.logged}
        for name, weight in self.weights.items():
            if not weight >= 0:
                raise UserError(f"{option(name + '_weight')} must be at least 0, not {weight}")

    def routing_losses(self, model, net_output, sample) -> Dict[str, Tensor]:
        """Compute the losses with a weight other than 0, by name: scalars summed over the batch, without weights."""
        raise NotImplementedError

    def forward(self, model, sample, reduce=True):
        """Compute the loss summed over the batch, the sample size, and the values to log.

        Raises:
            ValueError: `reduce` is False. The losses of a mechanism belong to sentences, not to tokens.
        """
        if not reduce:
            raise ValueError("reduce must be True: the losses of a mechanism belong to sentences, not to tokens")
        net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        ntokens, nsentences = sample["ntokens"], sample["target"].size(0)
        sample_size = nsentences if self.sentence_avg else ntokens
        logging_output = {
            "nll_loss": nll_loss.data,
            "ntokens": ntokens,
            "nsentences": nsentences,
            "sample_size": sample_size,
        }
        for name, routing_loss in self.routing_losses(model, net_output, sample).items():
            loss = loss + self.weights[name] * routing_loss
            logging_output[f"{name}_loss"] = routing_loss.data
        logging_output["loss"] = loss.data
        if self.report_accuracy:
            n_correct, total = self.compute_accuracy(model, net_output, sample)
            logging_output["n_correct"], logging_output["total"] = n_correct.item(), total.item()
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        super().reduce_metrics(logging_outputs)
        for name, logged in cls.logged.items():
            if any(f"{name}_loss" in log for log in logging_outputs):
                keys = f"{name}_loss", logged.count
                total, number = (sum(log.get(key, 0) for log in logging_outputs) for key in keys)
                metrics.log_scalar(f"{name}_loss", total / number / logged.unit, number, round=3)
