"""`load`, which loads a trained model."""

from fairseq_capsule.checkpoints.hub import CapsuleHub, load

__all__ = ["CapsuleHub", "load"]
