"""Registration of mechanisms from other packages."""

from fairseq_capsule.models import capsule_lstm, capsule_transformer
from fairseq_capsule.models.declaration import check_declaration, check_own_options
from fairseq_capsule.models.mechanism import Mechanism, register_mechanism
from fairseq_capsule.models.presets import register_presets


def add_mechanism(mechanism: Mechanism) -> Mechanism:
    """Register a mechanism and the architectures that are its presets.

    With `preset = "mine"` the architectures are `mine_transformer_base`, `mine_transformer_big`,
    `mine_transformer_tiny` and, with `on_lstm`, `mine_lstm`. They also have the options of the package's own
    mechanisms, off by default. Registering a mechanism again changes nothing.

    Returns:
        The registered mechanism.

    Raises:
        ValueError: an attribute is missing or wrong, its options do not turn it off by default, or another mechanism or
            model has its name, its preset or one of its options.
    """
    check_declaration(mechanism)  # what the next line reads exists
    check_own_options(mechanism, capsule_transformer.CapsuleTransformerConfig, capsule_lstm.CapsuleLSTMConfig)
    mechanism = register_mechanism(mechanism)
    if mechanism.preset is None:
        return mechanism
    register_presets(capsule_transformer.CapsuleTransformerModel, capsule_transformer.presets(mechanism))
    if mechanism.on_lstm:
        register_presets(capsule_lstm.CapsuleLSTMModel, capsule_lstm.presets(mechanism))
    return mechanism
