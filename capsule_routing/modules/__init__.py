"""Modules that own the parameters of a routing. They take plain keyword arguments, no config objects.

A module with parameters of its own, or with layers that do not start as torch starts them, has `reset_parameters()`,
which sets just these. To initialise a model again, or one from the meta device, reset a module after the modules in it:

    model.apply(lambda module: module.reset_parameters() if hasattr(module, "reset_parameters") else None)
"""

from capsule_routing.modules.aggregation import CapsuleAggregation, SimpleAggregation
from capsule_routing.modules.attention_routing import AttentionRouting
from capsule_routing.modules.compiling import compile_routing
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
    Projected,
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
    "Projected",
    "compile_routing",
]
