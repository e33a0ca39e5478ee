"""Models for fairseq, their configs and presets. Importing this package registers every architecture."""

from fairseq_capsule.root_logger import unchanged_root_logger

with unchanged_root_logger():
    from fairseq_capsule.models import architectures
    from fairseq_capsule.models.capsnmt import CapsNMTModel
    from fairseq_capsule.models.capsule_lstm import CapsuleLSTMModel
    from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel

__all__ = ["CapsNMTModel", "CapsuleLSTMModel", "CapsuleTransformerModel", "architectures"]
