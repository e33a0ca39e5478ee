"""Criterions. Importing this registers them."""

from fairseq_capsule.criterions.guided_losses import GuidedLossesCriterion, require_heads

__all__ = ["GuidedLossesCriterion", "require_heads"]
