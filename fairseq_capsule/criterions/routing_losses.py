"""Label-smoothed cross-entropy with the losses of a model's mechanisms."""

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor

from capsule_routing.errors import UserError
from fairseq_capsule.mechanisms import MECHANISMS
from fairseq_capsule.mechanisms.attaching import loss_heads
from fairseq_capsule.mechanisms.past_future import GuidedLossesConfig
from fairseq_capsule.mechanisms.registry import active_mechanisms, mechanisms
from fairseq_capsule.options import check_ranges, option, setting

NAME = "label_smoothed_cross_entropy_with_routing_losses"


@dataclass
class RoutingLossesConfig(GuidedLossesConfig, LabelSmoothedCrossEntropyCriterionConfig):
    """Options of the loss of fairseq, and of those of mechanisms."""

    # fairseq reads this dataclass before it imports the plugins of a user. A colon, because `=` in an option of a
    # checkpoint is refused.
    loss_weights: str = setting(
        "", "weights of losses of mechanisms of other packages: progress:0.5,other:0 (default: those of the package)"
    )


@register_criterion(NAME, dataclass=RoutingLossesConfig)
class RoutingLossesCriterion(LabelSmoothedCrossEntropyCriterion):
    """`label-smoothed NLL + Σ weight · loss`, all divided by fairseq's sample size.

    The losses are those of the model's mechanisms. Each loss is logged as `NAME_loss`, without its weight.
    """

    def __init__(self, task: FairseqTask, cfg: Any):
        super().__init__(task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy)
        check_ranges(cfg, RoutingLossesConfig)
        self.cfg = cfg
        self.given = _parsed(cfg.loss_weights)
        self.weights = {name: weight for mechanism in mechanisms() for name, weight in mechanism.loss_weights.items()}
        self.weights.update(self.given, bow=cfg.bow_weight, bca=cfg.bca_weight)

    def attach(self, model: BaseFairseqModel) -> None:
        """Refuse a loss without its head, and freeze a head without its loss. The task calls it before training."""
        self._check_heads(model)
        freeze_loss_heads(model, self.weights)

    def _check_heads(self, model: BaseFairseqModel) -> None:
        """Refuse a weight of a loss whose head the model does not have."""
        active = [mechanism for mechanism in active_mechanisms(getattr(model, "cfg", None)) if mechanism.loss_weights]
        computed = {name for _, name, _ in loss_heads(model)}
        for mechanism in active or MECHANISMS:
            for name in mechanism.loss_weights:
                weight = self.weights[name]
                if weight and name not in computed:
                    flag = option(name + "_weight") + " " if mechanism in MECHANISMS else f"--loss-weights {name}:"
                    needed = ", ".join(map(option, mechanism.on))
                    raise UserError(
                        f"{flag}{weight:g} needs a model with this loss ({needed}); set {flag}0 to train without"
                    )
        for name, weight in self.given.items():
            if weight and name not in computed:
                raise UserError(f"--loss-weights {name}:{weight:g} needs a model with this loss; leave it out")

    def forward(
        self, model: BaseFairseqModel, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Compute the loss summed over the batch, the sample size, and the values to log. `reduce` must be True."""
        if not reduce:
            raise ValueError("reduce must be True: the losses of a mechanism belong to sentences, not to tokens")
        self._check_heads(model)
        model.decoder.losses_computed = True  # the model warns of a criterion that does not say so
        net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        counts = {"ntokens": sample["ntokens"], "nsentences": sample["target"].size(0)}
        sample_size = counts["nsentences"] if self.sentence_avg else counts["ntokens"]
        logging_output = {"nll_loss": nll_loss.data, **counts, "sample_size": sample_size}
        for mechanism in active_mechanisms(getattr(model, "cfg", None)):
            if not any(self.weights[name] for name in mechanism.loss_weights):
                continue
            losses = mechanism.losses(model, net_output, sample, self.weights, self.cfg)
            for name, (value, number, unit) in losses.items():
                if name not in mechanism.loss_weights:
                    raise ValueError(f"mechanism {mechanism.name}: its loss {name} is not in `loss_weights`")
                loss = loss + self.weights[name] * value
                logging_output[f"{name}_loss"] = value.data / unit
                logging_output[f"{name}_count"] = number
        logging_output["loss"] = loss.data
        if self.report_accuracy:
            n_correct, total = self.compute_accuracy(model, net_output, sample)
            logging_output["n_correct"], logging_output["total"] = n_correct.item(), total.item()
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        for name in dict.fromkeys(key.removesuffix("_loss") for log in logging_outputs for key in log):
            number = sum(log.get(f"{name}_count", 0) for log in logging_outputs)
            if number:
                total = sum(log.get(f"{name}_loss", 0) for log in logging_outputs)
                metrics.log_scalar(f"{name}_loss", total / number, number, round=3)


def freeze_loss_heads(model: BaseFairseqModel, weights: Mapping[str, float]) -> None:
    """Freeze the heads of losses that have no weight, because they would have no gradient."""
    for _, name, head in loss_heads(model):
        if head is not None:
            head.requires_grad_(bool(weights.get(name)))


def _parsed(text: str) -> Dict[str, float]:
    """Parse `--loss-weights`. Raises a UserError for another form, or a loss that no mechanism of a package has."""
    of_others = {name for mechanism in mechanisms() if mechanism not in MECHANISMS for name in mechanism.loss_weights}
    weights = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition(":")
        if name not in of_others:
            known = f"there are {', '.join(sorted(of_others))}" if of_others else "no --user-dir brings one"
            raise UserError(f"--loss-weights {text}: no mechanism of another package has a loss {name}; {known}")
        try:
            weights[name] = float(value)
        except ValueError:
            weights[name] = math.nan
        if not weights[name] >= 0:
            raise UserError(f"--loss-weights {text}: {value!r} is no number from 0 on; write {name}:0.5")
    return weights
