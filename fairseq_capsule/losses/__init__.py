"""Losses as pure functions of tensors, summed over a batch, in nats. They have no parameters and no state."""

from fairseq_capsule.losses.bag_of_words import (
    Overlap,
    StepOverlap,
    bag_of_words_loss,
    bag_overlap,
    bag_overlap_by_step,
    bag_prediction_loss,
    bag_recall,
    mean_bag_of_words_loss,
)
from fairseq_capsule.losses.content_agreement import content_agreement_loss, mean_content_agreement_loss

__all__ = [
    "Overlap",
    "StepOverlap",
    "bag_of_words_loss",
    "bag_overlap",
    "bag_overlap_by_step",
    "bag_prediction_loss",
    "bag_recall",
    "content_agreement_loss",
    "mean_bag_of_words_loss",
    "mean_content_agreement_loss",
]
