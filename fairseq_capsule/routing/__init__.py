"""Capsule routing as pure tensor functions, without parameters and state. They need only torch."""

from fairseq_capsule.routing.additive import additive_scores, squared_exponential
from fairseq_capsule.routing.attention import horizontal_routing, vertical_routing
from fairseq_capsule.routing.contractions import dot_product_agreement
from fairseq_capsule.routing.dynamic import RoutingResult, dynamic_routing
from fairseq_capsule.routing.guided import guided_routing
from fairseq_capsule.routing.last_token import append_block_logits, block_size, missing_positions, route_last_token
from fairseq_capsule.routing.precision import in_float32
from fairseq_capsule.routing.squash import leaky_softmax, masked_softmax, squash

__all__ = [
    "RoutingResult",
    "additive_scores",
    "append_block_logits",
    "block_size",
    "dot_product_agreement",
    "dynamic_routing",
    "guided_routing",
    "horizontal_routing",
    "in_float32",
    "leaky_softmax",
    "masked_softmax",
    "missing_positions",
    "route_last_token",
    "squash",
    "squared_exponential",
    "vertical_routing",
]
