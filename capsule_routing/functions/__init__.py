"""Capsule routing as pure tensor functions, without parameters and state. They need only torch."""

from capsule_routing.functions.dynamic import RoutingResult, dot_product_agreement, dynamic_routing
from capsule_routing.functions.guided import additive_scores, guided_routing, squared_exponential
from capsule_routing.functions.horizontal import horizontal_routing
from capsule_routing.functions.horizontal.recurrent import LONGEST_BLOCK, route_last_token
from capsule_routing.functions.precision import in_float32
from capsule_routing.functions.squash import leaky_softmax, masked_softmax, squash
from capsule_routing.functions.vertical import vertical_routing

__all__ = [
    "LONGEST_BLOCK",
    "RoutingResult",
    "additive_scores",
    "dot_product_agreement",
    "dynamic_routing",
    "guided_routing",
    "horizontal_routing",
    "in_float32",
    "leaky_softmax",
    "masked_softmax",
    "route_last_token",
    "squash",
    "squared_exponential",
    "vertical_routing",
]
