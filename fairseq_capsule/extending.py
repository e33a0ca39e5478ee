"""Registration of mechanisms from other packages. Importing it also registers all that `fairseq_capsule.tasks` does."""

from dataclasses import fields
from typing import Any, Mapping, Optional, Set

import fairseq_capsule.tasks  # noqa: F401
from fairseq_capsule.inspection import Inspection, register_inspection
from fairseq_capsule.mechanisms.base import Mechanism, fits_lstm, register_mechanism
from fairseq_capsule.mechanisms.declaration import check_declaration, check_own_options
from fairseq_capsule.models import capsule_lstm, capsule_transformer
from fairseq_capsule.models.presets import Presets, register_presets


def add_mechanism(
    mechanism: Mechanism, inspection: Optional[Inspection] = None, *, before: Optional[str] = None
) -> Mechanism:
    """Register a mechanism, the architectures that are its presets, and its inspection.

    With `preset = "mine"` the architectures are `mine_transformer_base`, `mine_transformer_big`,
    `mine_transformer_tiny` and, if a decoder part is all that it has, `mine_lstm`. They also have the options of the
    package's own mechanisms, off by default. Registering a mechanism again changes nothing.

    Args:
        mechanism: an instance of a subclass of `Mechanism`.
        inspection: an instance of a subclass of `Inspection`. Without one, nothing of the mechanism is shown or logged.
        before: the name of the mechanism before which its parts run; by default they run last.

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
    mechanism = register_mechanism(mechanism, before)
    if inspection is not None:
        register_inspection(mechanism.name, inspection)
    if mechanism.preset is not None:
        add_presets(mechanism.preset, mechanism)
    return mechanism


def add_presets(name: str, *mechanisms: Mechanism, on: Mapping[str, Any] = {}) -> None:
    """Register architectures that contain several mechanisms, perhaps of several packages.

    The architectures are `NAME_transformer_base`, `NAME_transformer_big`, `NAME_transformer_tiny` and, if fairseq's
    LSTM can contain all of them, `NAME_lstm`.

    Args:
        name: the first part of the names of the architectures.
        mechanisms: registered mechanisms; all others are off, but those of the package can be turned on.
        on: further values of options, for example of the package's own mechanisms.

    Raises:
        ValueError: another model has one of these names, or `on` names an option that does not exist.
    """
    transformers = capsule_transformer.presets(name, mechanisms, on)
    unknown = on.keys() - _options(transformers)
    if unknown:
        raise ValueError(f"presets {name}: there is no option {', '.join(sorted(unknown))}; correct the name")
    register_presets(capsule_transformer.CapsuleTransformerModel, transformers)
    lstm = capsule_lstm.presets(name, mechanisms, on)
    if all(map(fits_lstm, mechanisms)) and on.keys() <= _options(lstm):
        register_presets(capsule_lstm.CapsuleLSTMModel, lstm)


def _options(presets: Presets) -> Set[str]:
    return {item.name for base in presets.bases for item in fields(base)}
