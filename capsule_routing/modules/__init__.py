"""Modules that own the parameters of a routing. They take plain keyword arguments, no config objects."""

from capsule_routing.modules.aggregation import CapsuleAggregation, SimpleAggregation
from capsule_routing.modules.attention_routing import AttentionRouting
from capsule_routing.modules.global_representation import (
    CapsulePooling,
    ContextGate,
    GlobalRepresentation,
    MeanPooling,
    PlainSum,
)
from capsule_routing.modules.past_future import (
    GuidedDynamicRouting,
    HolisticContext,
    PastFutureAttention,
    PastFutureClassifier,
    PastFutureOutput,
    PastFutureRouting,
    SourceParts,
)
from capsule_routing.modules.selective_attention import QueryKeyNorm, SelectiveAttention

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
