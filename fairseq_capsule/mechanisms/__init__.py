"""The mechanisms, one module each, and their interface. Importing this package registers them."""

from capsule_routing.losses import Loss
from fairseq_capsule.mechanisms.aggregation import AGGREGATION
from fairseq_capsule.mechanisms.attention_routing import ATTENTION_ROUTING
from fairseq_capsule.mechanisms.base import Mechanism, Place, Sizes, Source, Target
from fairseq_capsule.mechanisms.global_representation import GLOBAL_REPRESENTATION
from fairseq_capsule.mechanisms.past_future import PAST_FUTURE
from fairseq_capsule.mechanisms.registry import register_mechanism
from fairseq_capsule.mechanisms.selective_attention import SELECTIVE_ATTENTION

# The order of computation. In a decoder the global representation comes before PAST and FUTURE.
ON_TRANSFORMERS = (GLOBAL_REPRESENTATION, PAST_FUTURE, SELECTIVE_ATTENTION, ATTENTION_ROUTING)
MECHANISMS = (*ON_TRANSFORMERS, AGGREGATION)

for _mechanism in MECHANISMS:
    register_mechanism(_mechanism)

__all__ = ["Loss", "Mechanism", "Place", "Sizes", "Source", "Target", "register_mechanism"]
