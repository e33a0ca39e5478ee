"""Criterions. Importing this package registers them."""

from fairseq_capsule.criterions.bag_of_words_probe import BagOfWordsProbe
from fairseq_capsule.criterions.routing_losses import RoutingLossesCriterion, freeze_loss_heads

__all__ = ["BagOfWordsProbe", "RoutingLossesCriterion", "freeze_loss_heads"]
