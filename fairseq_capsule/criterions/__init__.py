"""Criterions. Importing this package registers them."""

from fairseq_capsule.criterions.bag_of_words_probe import BagOfWordsProbe
from fairseq_capsule.criterions.guided_losses import GuidedLossesCriterion, freeze_unused_heads
from fairseq_capsule.criterions.routing_losses import LoggedLoss, RoutingLossesCriterion

__all__ = [
    "BagOfWordsProbe",
    "GuidedLossesCriterion",
    "LoggedLoss",
    "RoutingLossesCriterion",
    "freeze_unused_heads",
]
