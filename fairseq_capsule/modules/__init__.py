"""Modules that own the parameters of a routing. They take plain keyword arguments, no config objects."""

from fairseq_capsule.modules.aggregation import CapsuleAggregation, SimpleAggregation
from fairseq_capsule.modules.attention_routing import AttentionRouting
from fairseq_capsule.modules.global_representation import (
    CapsulePooling,
    ContextGate,
    GlobalRepresentation,
    MeanPooling,
    PlainSum,
)
from fairseq_capsule.modules.past_future import (
    GuidedDynamicRouting,
    HolisticContext,
    PastFutureAttention,
    PastFutureClassifier,
    PastFutureOutput,
    PastFutureRouting,
    SourceParts,
)
from fairseq_capsule.modules.selective_attention import QueryKeyNorm, SelectiveAttention

__all__ = [
    "AttentionRouting",
    "CapsuleAggregation",
    "CapsulePooling",
    "ContextGate",
    "GlobalRepresentation",
    "GuidedDynamicRouting",
    "HolisticContext",
    "MeanPooling",
    "PastFutureAttention",
    "PastFutureClassifier",
    "PastFutureOutput",
    "PastFutureRouting",
    "PlainSum",
    "QueryKeyNorm",
    "SelectiveAttention",
    "SimpleAggregation",
    "SourceParts",
]
