"""Capsule routing as pure tensor functions, without parameters and state. They need only torch."""

from fairseq_capsule.routing.dynamic import RoutingResult, dot_product_agreement, dynamic_routing
from fairseq_capsule.routing.guided import additive_scores, guided_routing, squared_exponential
from fairseq_capsule.routing.horizontal import horizontal_routing
from fairseq_capsule.routing.horizontal.recurrent import (
    LONGEST_BLOCK,
    append_to_block,
    in_own_block,
    route_last_token,
    split_block,
)
from fairseq_capsule.routing.precision import in_float32
from fairseq_capsule.routing.squash import leaky_softmax, masked_softmax, squash
from fairseq_capsule.routing.vertical import vertical_routing

__all__ = [
    "LONGEST_BLOCK",
    "RoutingResult",
    "additive_scores",
    "append_to_block",
    "dot_product_agreement",
    "dynamic_routing",
    "guided_routing",
    "horizontal_routing",
    "in_float32",
    "in_own_block",
    "leaky_softmax",
    "masked_softmax",
    "route_last_token",
    "split_block",
    "squash",
    "squared_exponential",
    "vertical_routing",
]
