"""Mechanisms of other packages."""

from fairseq.models import MODEL_REGISTRY

from fairseq_capsule.models import capsule_lstm, capsule_transformer
from fairseq_capsule.models.flat_config import register_presets
from fairseq_capsule.models.mechanism import Mechanism, register_mechanism


def add_mechanism(mechanism: Mechanism) -> Mechanism:
    """Register a mechanism and the architectures that are its presets.

    With `preset = "mine"` these are `mine_transformer_base`, `mine_transformer_big`, `mine_transformer_tiny` and, with
    `on_lstm`, `mine_lstm`. They have the options of the package's own mechanisms too, off by default. Registering a
    mechanism again changes nothing.

    Raises:
        ValueError: another mechanism has this name, or another model the name of a preset.
    """
    mechanism = register_mechanism(mechanism)
    if mechanism.preset is None:
        return mechanism
    families = [(capsule_transformer.CapsuleTransformerModel, capsule_transformer.presets(mechanism))]
    if mechanism.on_lstm:
        families.append((capsule_lstm.CapsuleLSTMModel, capsule_lstm.presets(mechanism)))
    for model, presets in families:
        register_presets(model, {name: kind for name, kind in presets.items() if name not in MODEL_REGISTRY})
    return mechanism
