"""Losses as pure functions of tensors, summed over a batch, in nats. They have no parameters and no state."""

from capsule_routing.losses.cross_entropy import label_smoothed_cross_entropy
from capsule_routing.losses.loss import Loss
from capsule_routing.losses.past_future import (
    bag_of_words_loss,
    bag_overlap,
    bag_overlap_by_step,
    bags_of_words,
    content_agreement_loss,
    guided_losses,
)
from capsule_routing.losses.probe import bag_prediction_loss, bag_recall
from capsule_routing.losses.vocabulary import VocabularyLoss, smoothed_cross_entropy, weighted_sum

__all__ = [
    "Loss",
    "VocabularyLoss",
    "bag_of_words_loss",
    "bag_overlap",
    "bag_overlap_by_step",
    "bag_prediction_loss",
    "bag_recall",
    "bags_of_words",
    "content_agreement_loss",
    "guided_losses",
    "label_smoothed_cross_entropy",
    "smoothed_cross_entropy",
    "weighted_sum",
]
