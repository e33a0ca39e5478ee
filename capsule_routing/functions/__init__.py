"""Capsule routing as pure tensor functions, without parameters and state. They import only torch."""

from capsule_routing.functions.guided import additive_scores, guided_routing, squared_exponential
from capsule_routing.functions.precision import in_float32
from capsule_routing.functions.routing import (
    RoutingResult,
    dot_product_agreement,
    dynamic_routing,
    horizontal_routing,
    leaky_softmax,
    masked_softmax,
    squash,
    vertical_routing,
)

__all__ = [
    "RoutingResult",
    "additive_scores",
    "dot_product_agreement",
    "dynamic_routing",
    "guided_routing",
    "horizontal_routing",
    "in_float32",
    "leaky_softmax",
    "masked_softmax",
    "squash",
    "squared_exponential",
    "vertical_routing",
]
