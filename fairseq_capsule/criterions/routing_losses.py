"""Label-smoothed cross-entropy with the losses of a model's mechanisms."""

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.losses import Loss, smoothed_cross_entropy, weighted_sum
from fairseq_capsule.mechanisms import MECHANISMS, Mechanism
from fairseq_capsule.mechanisms.attaching import loss_heads
from fairseq_capsule.mechanisms.past_future import GuidedLossesConfig
from fairseq_capsule.mechanisms.registry import active_mechanisms, mechanisms
from fairseq_capsule.models.output_layers import OutputLayer, output_layer
from fairseq_capsule.models.outputs import output_embeddings
from fairseq_capsule.options import check_ranges, option, setting

OUTPUT_LOGITS = ChoiceEnum(["auto", "blocks", "kept"])
NAME = "label_smoothed_cross_entropy_with_routing_losses"
MAIN = "label_smoothed_cross_entropy"


@dataclass
class RoutingLossesConfig(GuidedLossesConfig, LabelSmoothedCrossEntropyCriterionConfig):
    """Options of the loss of fairseq, and of those of mechanisms."""

    # fairseq reads this dataclass before it imports the plugins of a user. A colon, because `=` in an option of a
    # checkpoint is refused.
    loss_weights: str = setting(
        "", "weights of losses of mechanisms of other packages: progress:0.5,other:0 (default: those of the package)"
    )
    output_logits: OUTPUT_LOGITS = setting(
        "auto",
        "the logits of a batch. blocks: computed a few words at a time, and discarded; kept: all at once, as in "
        "fairseq; auto: blocks on a CPU, kept on a GPU. Models that change their logits, and --report-accuracy, keep "
        "them",
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
        self.given, self.weights = _parsed(cfg.loss_weights), weights_of_losses(cfg)

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
        layer = self._output_layer(model, sample)
        if layer is None:
            net_output = model(**sample["net_input"])
        else:
            features, extra = model(**sample["net_input"], features_only=True)
            net_output = (None, extra)  # reading its logits is an error
        losses = self._losses_of_mechanisms(model, net_output, sample)
        weighted = {name: (self.weights[name], loss.value) for name, loss in losses.items()}
        if layer is None:
            loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
            added, values, _ = weighted_sum(weighted, output_embeddings(model)) if weighted else (0.0, {}, {})
            loss = loss + added
        else:
            start, target = self.ignore_prefix_size, sample["target"]
            padding_mask = target.eq(self.padding_idx)
            weighted[MAIN] = (
                1.0,
                smoothed_cross_entropy(
                    features[:, start:], target[:, start:], padding_mask[:, start:], self.eps, layer.bias
                ),
            )
            loss, values, likelihoods = weighted_sum(weighted, layer.embeddings)
            nll_loss = likelihoods[MAIN]
        counts = {"ntokens": sample["ntokens"], "nsentences": sample["target"].size(0)}
        sample_size = counts["nsentences"] if self.sentence_avg else counts["ntokens"]
        logging_output = {"nll_loss": nll_loss.data, **counts, "sample_size": sample_size}
        for name, (_, number, unit) in losses.items():
            logging_output[f"{name}_loss"] = values[name] / unit
            logging_output[f"{name}_count"] = number
        logging_output["loss"] = loss.data
        if self.report_accuracy:
            n_correct, total = self.compute_accuracy(model, net_output, sample)
            logging_output["n_correct"], logging_output["total"] = n_correct.item(), total.item()
        return loss, sample_size, logging_output

    def _weighted_mechanisms(self, model: BaseFairseqModel) -> List[Mechanism]:
        """Return the mechanisms of a model with a loss that has a weight."""
        active = active_mechanisms(getattr(model, "cfg", None))
        return [mechanism for mechanism in active if any(self.weights[name] for name in mechanism.loss_weights)]

    def _losses_of_mechanisms(
        self, model: BaseFairseqModel, net_output: Any, sample: Dict[str, Any]
    ) -> Dict[str, Loss]:
        losses: Dict[str, Loss] = {}
        for mechanism in self._weighted_mechanisms(model):
            own = mechanism.losses(model, net_output, sample, self.weights, self.cfg)
            for name in own.keys() - mechanism.loss_weights.keys():
                raise ValueError(f"mechanism {mechanism.name}: its loss {name} is not in `loss_weights`")
            losses.update(own)
        return losses

    def _output_layer(self, model: BaseFairseqModel, sample: Dict[str, Any]) -> Optional[OutputLayer]:
        """Return the output layer of a model if its logits need not be kept, otherwise None."""
        form = str(self.cfg.output_logits)
        if form == "kept" or form == "auto" and sample["target"].device.type != "cpu" or self.report_accuracy:
            return None
        if any(mechanism.needs_logits for mechanism in self._weighted_mechanisms(model)):
            return None
        theirs = LabelSmoothedCrossEntropyCriterion
        own = type(self).compute_loss, type(self).get_lprobs_and_target
        if own != (theirs.compute_loss, theirs.get_lprobs_and_target):  # a subclass with another loss
            return None
        return output_layer(model)

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        for name in dict.fromkeys(key.removesuffix("_loss") for log in logging_outputs for key in log):
            number = sum(log.get(f"{name}_count", 0) for log in logging_outputs)
            if number:
                total = sum(log.get(f"{name}_loss", 0) for log in logging_outputs)
                metrics.log_scalar(f"{name}_loss", total / number, number, round=3)


def weights_of_losses(cfg: Any) -> Dict[str, float]:
    """Return the weight of each loss of a registered mechanism, by name, with the options of this criterion."""
    weights = {name: weight for mechanism in mechanisms() for name, weight in mechanism.loss_weights.items()}
    return {**weights, **_parsed(cfg.loss_weights), "bow": cfg.bow_weight, "bca": cfg.bca_weight}


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
