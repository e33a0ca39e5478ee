"""Models for fairseq, their configs and presets. Importing this package registers every architecture."""

from fairseq_capsule.models.capsnmt import CapsNMTModel
from fairseq_capsule.models.capsule_lstm import CapsuleLSTMModel
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule.models.extending import add_mechanism
from fairseq_capsule.models.mechanism import EncodedSource, Mechanism
from fairseq_capsule.models.statistics import Mean, Statistics, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.models.views import NamedArray, Panel, Sentence, View, by_layer, named, numbers

__all__ = [
    "CapsNMTModel",
    "CapsuleLSTMModel",
    "CapsuleTransformerModel",
    "EncodedSource",
    "Mean",
    "Mechanism",
    "NamedArray",
    "Panel",
    "Sentence",
    "Statistics",
    "View",
    "add_mechanism",
    "by_layer",
    "capsule_norms",
    "coupling_entropy",
    "mean_where",
    "named",
    "numbers",
]
