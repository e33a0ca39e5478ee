"""The mechanisms of the four papers, one module each. Importing this package registers them.

The order of the imports is the order of computation. In a decoder the global representation comes before PAST and
FUTURE. The self-attention of the layers is replaced last.
"""

from fairseq_capsule.models.mechanisms.global_representation import GLOBAL_REPRESENTATION_MECHANISM  # noqa: I001
from fairseq_capsule.models.mechanisms.past_future import PAST_FUTURE_MECHANISM
from fairseq_capsule.models.mechanisms.attention_routing import ATTENTION_ROUTING
from fairseq_capsule.models.mechanisms.aggregation import AGGREGATION

ON_TRANSFORMERS = (GLOBAL_REPRESENTATION_MECHANISM, PAST_FUTURE_MECHANISM, ATTENTION_ROUTING)

__all__ = [
    "AGGREGATION",
    "ATTENTION_ROUTING",
    "GLOBAL_REPRESENTATION_MECHANISM",
    "ON_TRANSFORMERS",
    "PAST_FUTURE_MECHANISM",
]
