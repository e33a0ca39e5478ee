"""Capsule routing as pure tensor functions, without parameters and state. They need only torch."""

from fairseq_capsule.routing.dynamic import RoutingResult, dot_product_agreement, dynamic_routing
from fairseq_capsule.routing.guided import additive_scores, guided_routing, squared_exponential
from fairseq_capsule.routing.horizontal import horizontal_routing
from fairseq_capsule.routing.horizontal.recurrent import LONGEST_BLOCK, route_last_token
from fairseq_capsule.routing.precision import in_float32
from fairseq_capsule.routing.squash import leaky_softmax, masked_softmax, squash
from fairseq_capsule.routing.vertical import vertical_routing

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
