"""Models for fairseq, their configs and presets. Importing this package registers every architecture."""

from fairseq_capsule.models.capsnmt import CapsNMTModel
from fairseq_capsule.models.capsule_lstm import CapsuleLSTMModel
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule.models.extending import add_mechanism
from fairseq_capsule.models.mechanism import EncodedSource, Mechanism
from fairseq_capsule.models.views import NamedArray, Panel, Sentence, View

__all__ = [
    "CapsNMTModel",
    "CapsuleLSTMModel",
    "CapsuleTransformerModel",
    "EncodedSource",
    "Mechanism",
    "NamedArray",
    "Panel",
    "Sentence",
    "View",
    "add_mechanism",
]
