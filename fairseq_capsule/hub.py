"""The place at which users find `load`."""

from fairseq_capsule.checkpoints.hub import CapsuleHub, load

__all__ = ["CapsuleHub", "load"]
