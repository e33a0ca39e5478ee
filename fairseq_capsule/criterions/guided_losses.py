"""Label-smoothed cross-entropy with the guided losses of Dynamic Past and Future."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from fairseq_capsule.criterions.routing_losses import LoggedLoss, RoutingLossesCriterion
from fairseq_capsule.errors import UserError
from fairseq_capsule.losses import (
    bag_of_words_loss,
    content_agreement_loss,
    mean_bag_of_words_loss,
    mean_content_agreement_loss,
)

NAME = "label_smoothed_cross_entropy_with_guided_losses"
HEADS = ("bow", "bca")  # a subclass may have weights of other losses, which have no head here
# By the model's --guided-reduction.
BAG_OF_WORDS = {"mean": mean_bag_of_words_loss, "sum": bag_of_words_loss}
CONTENT_AGREEMENT = {"mean": mean_content_agreement_loss, "sum": content_agreement_loss}


@dataclass
class GuidedLossesConfig(LabelSmoothedCrossEntropyCriterionConfig):
    bow_weight: float = field(default=1.0, metadata={"help": "weight of the bag-of-words loss; 0: off"})
    bca_weight: float = field(default=1.0, metadata={"help": "weight of the content agreement loss; 0: off"})
    bow_steps: float = field(
        default=1.0,
        metadata={"help": "share of target steps, chosen at random, for the estimate of the bag-of-words loss"},
    )


@register_criterion(NAME, dataclass=GuidedLossesConfig)
class GuidedLossesCriterion(RoutingLossesCriterion):
    """`label-smoothed NLL + λ1 L_BoW + λ2 L_BCA` (Zheng et al. 2019, §3.3), all divided by fairseq's sample size.

    The model determines the form of the losses (`--guided-reduction`). In addition to the plain criterion it logs:

    - `bow_loss`, the negative log-likelihood of a word of a bag, in base 2. With "sum" it is the mean over all words of
      all bags and each sentence is weighted by its length; with "mean" each bag that is not empty has the same weight
      in its sentence, and each sentence the same weight.
    - `bca_loss`, the mean squared distance of a sentence, PAST plus FUTURE: with "sum" the sum over dimensions, with
      "mean" per dimension.

    At validation the bag-of-words loss uses all steps, for any `--bow-steps`.

    Raises:
        UserError: a weight is below 0, the share of steps is outside (0, 1], a weight is above 0 and the model has no
            such head, or PyTorch looks for unused parameters.
    """

    logged = {"bow": LoggedLoss("bow_count", math.log(2)), "bca": LoggedLoss("nsentences", 1.0)}

    def __init__(self, task, cfg):
        super().__init__(task, cfg)
        if not 0 < cfg.bow_steps <= 1:
            raise UserError(f"--bow-steps must be above 0 and at most 1, not {cfg.bow_steps}")
        self.bow_steps = cfg.bow_steps

    def attach(self, model) -> None:
        """Refuse a loss without its head, and freeze a head without its loss. The task calls it before training."""
        require_heads(getattr(model.decoder, "past_future", None), self.weights)
        freeze_unused_heads(model, self.weights)

    def forward(self, model, sample, reduce=True):
        """Compute the loss as the base class does, and the number by which `bow_loss` is divided for the log."""
        loss, sample_size, logging_output = super().forward(model, sample, reduce)
        if self.weights["bow"]:
            logging_output["bow_count"] = self._bow_count(model, sample)
        return loss, sample_size, logging_output

    def _bow_count(self, model, sample) -> Tensor:
        lengths = sample["target"].ne(self.padding_idx).sum(1)
        if model.decoder.past_future.reduction == "sum":  # T steps with T words in the two bags, over T
            return lengths.sum()
        return (2 - 1 / lengths).sum()  # T steps with two bags, the first of them empty, over T

    def routing_losses(self, model, net_output, sample) -> Dict[str, Tensor]:
        """Compute the losses that are on, by name: summed over the batch, without their weights.

        `bow` is in nats; `bca` is a squared distance.
        """
        part: Any = getattr(model.decoder, "past_future", None)
        require_heads(part, self.weights)
        uses_heads = any(self.weights[name] for name in HEADS)
        if uses_heads:
            _refuse_search_for_unused_parameters(model)
        routed: Any = net_output[1].get("past_future") if uses_heads else None
        target = sample["target"]
        padding_mask = target.eq(self.padding_idx)
        losses = {}
        if self.weights["bow"]:
            losses["bow"] = BAG_OF_WORDS[part.reduction](
                part.bow["past"](routed.past),
                part.bow["future"](routed.future),
                model.decoder.output_embeddings,
                target,
                padding_mask,
                steps=self.bow_steps if model.training else 1.0,
            )
        if self.weights["bca"]:
            losses["bca"] = CONTENT_AGREEMENT[part.reduction](
                routed.past,
                routed.future,
                routed.state,
                part.bca["past"].weight,
                part.bca["future"].weight,
                padding_mask,
            )
        return losses


def require_heads(part: Optional[nn.Module], weights: Mapping[str, float]) -> None:
    """Raise a UserError for a weight above 0 if `part`, the model's `past_future`, does not have its head."""
    for name in HEADS:
        weight = weights.get(name, 0)
        if weight and getattr(part, name, None) is None:
            raise UserError(
                f"--{name}-weight {weight:g} needs a model with --guided-heads {name} or both; "
                f"set --{name}-weight 0 to train without"
            )


def _refuse_search_for_unused_parameters(model: BaseFairseqModel) -> None:
    # The heads are applied outside of the model's forward, so PyTorch would mark them unused. Then their gradients are
    # an error: "Expected to mark a variable ready only once".
    if getattr(model, "find_unused_parameters", False):
        raise UserError(
            "--find-unused-parameters does not work with the guided losses; leave it out, or use "
            "--ddp-backend legacy_ddp"
        )


def freeze_unused_heads(model: BaseFairseqModel, weights: Mapping[str, float]) -> None:
    """Freeze the heads that no loss uses, because they would have no gradient."""
    part = getattr(model.decoder, "past_future", None)
    for name in HEADS:
        head = getattr(part, name, None)
        if head is not None:
            head.requires_grad_(bool(weights.get(name)))
