"""Criterions. Importing this registers them."""

from fairseq_capsule.criterions.bag_of_words_probe import BagOfWordsProbe
from fairseq_capsule.criterions.guided_losses import GuidedLossesCriterion, freeze_unused_heads

__all__ = ["BagOfWordsProbe", "GuidedLossesCriterion", "freeze_unused_heads"]
