"""Modules that own the parameters of a routing. They take plain keyword arguments, no config objects."""

from fairseq_capsule.modules.attention_routing import AttentionRouting
from fairseq_capsule.modules.capsule_aggregation import CapsuleAggregation, SimpleAggregation
from fairseq_capsule.modules.capsule_pooling import CapsulePooling, MeanPooling
from fairseq_capsule.modules.global_representation import ContextGate, GlobalRepresentation, PlainSum
from fairseq_capsule.modules.holistic_context import HolisticContext, PastFutureOutput
from fairseq_capsule.modules.past_future import (
    GuidedDynamicRouting,
    PastFutureAttention,
    PastFutureClassifier,
    PastFutureRouting,
    SourceParts,
)

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
    "SimpleAggregation",
    "SourceParts",
]
