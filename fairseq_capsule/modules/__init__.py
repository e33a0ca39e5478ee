"""Modules that own the parameters of a routing; plain keyword arguments, no config objects."""

from fairseq_capsule.modules.attention_routing import AttentionRouting
from fairseq_capsule.modules.past_future import (
    GuidedDynamicRouting,
    PastFutureAttention,
    PastFutureClassifier,
    PastFutureRouting,
    SourceParts,
)

__all__ = [
    "AttentionRouting",
    "GuidedDynamicRouting",
    "PastFutureAttention",
    "PastFutureClassifier",
    "PastFutureRouting",
    "SourceParts",
]
