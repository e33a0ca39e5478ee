"""Registration of mechanisms from other packages. Importing it also registers all that `fairseq_capsule.tasks` does."""

from typing import Optional

import fairseq_capsule.tasks  # noqa: F401
from fairseq_capsule.inspection import Inspection, register_inspection
from fairseq_capsule.models import capsule_lstm, capsule_transformer
from fairseq_capsule.models.declaration import check_declaration, check_own_options
from fairseq_capsule.models.mechanism import Mechanism, register_mechanism
from fairseq_capsule.models.presets import register_presets


def add_mechanism(mechanism: Mechanism, inspection: Optional[Inspection] = None) -> Mechanism:
    """Register a mechanism, the architectures that are its presets, and its inspection.

    With `preset = "mine"` the architectures are `mine_transformer_base`, `mine_transformer_big`,
    `mine_transformer_tiny` and, with `on_lstm`, `mine_lstm`. They also have the options of the package's own
    mechanisms, off by default. Registering a mechanism again changes nothing.

    Args:
        mechanism: an instance of a subclass of `Mechanism`.
        inspection: an instance of a subclass of `Inspection`. Without one, nothing of the mechanism is shown or logged.

    Returns:
        The registered mechanism.

    Raises:
        ValueError: an attribute is missing or wrong, its options do not turn it off by default, another mechanism or
            model has its name, its preset or one of its options, or the inspection is not an `Inspection`.
    """
    check_declaration(mechanism)  # what the next line reads exists
    check_own_options(mechanism, capsule_transformer.CapsuleTransformerConfig, capsule_lstm.CapsuleLSTMConfig)
    if not (inspection is None or isinstance(inspection, Inspection)):
        raise ValueError(f"mechanism {mechanism.name}: the inspection must be an instance of a subclass of Inspection")
    mechanism = register_mechanism(mechanism)
    if inspection is not None:
        register_inspection(mechanism.name, inspection)
    if mechanism.preset is None:
        return mechanism
    register_presets(capsule_transformer.CapsuleTransformerModel, capsule_transformer.presets(mechanism))
    if mechanism.on_lstm:
        register_presets(capsule_lstm.CapsuleLSTMModel, capsule_lstm.presets(mechanism))
    return mechanism
