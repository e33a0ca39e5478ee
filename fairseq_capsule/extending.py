"""Registration of mechanisms from other packages. Importing it also registers all that `fairseq_capsule.tasks` does."""

from typing import Any, Mapping, Optional

import fairseq_capsule  # noqa: F401
from fairseq_capsule import inspection as registry
from fairseq_capsule.inspection import Inspection
from fairseq_capsule.mechanisms.base import Mechanism, fits_lstm, register_mechanism
from fairseq_capsule.mechanisms.declaration import check_declaration, option_names
from fairseq_capsule.models.capsule_lstm import CapsuleLSTMConfig, CapsuleLSTMModel
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerConfig, add_transformers
from fairseq_capsule.models.presets import bases_of, register_presets


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

    Raises:
        ValueError: an attribute is missing or wrong, its options do not turn it off by default, another mechanism or
            model has its name, its preset or one of its options, or the inspection is not an `Inspection`.
    """
    check_declaration(mechanism, models=(CapsuleTransformerConfig, CapsuleLSTMConfig))
    if not (inspection is None or isinstance(inspection, Inspection)):
        raise ValueError(f"mechanism {mechanism.name}: the inspection must be an instance of a subclass of Inspection")
    mechanism = register_mechanism(mechanism, before)
    if inspection is not None:
        registry.INSPECTIONS.setdefault(mechanism.name, inspection)
    if mechanism.preset is not None:
        add_presets(mechanism.preset, mechanism)
    return mechanism


def add_presets(name: str, *mechanisms: Mechanism, on: Mapping[str, Any] = {}) -> None:
    """Register architectures that contain several mechanisms, perhaps of several packages.

    Args:
        name: the architectures are `NAME_transformer_base`, `NAME_transformer_big`, `NAME_transformer_tiny` and, if
            fairseq's LSTM can contain all of them, `NAME_lstm`.
        mechanisms: registered mechanisms; all others are off, but those of the package can be turned on.
        on: further values of options, for example of the package's own mechanisms.

    Raises:
        ValueError: another model has one of these names, or `on` names an option that does not exist.
    """
    unknown = on.keys() - option_names(*bases_of(CapsuleTransformerConfig, mechanisms))
    if unknown:
        raise ValueError(f"presets {name}: there is no option {', '.join(sorted(unknown))}; correct the name")
    add_transformers(name, mechanisms, on)
    if all(map(fits_lstm, mechanisms)) and on.keys() <= option_names(*bases_of(CapsuleLSTMConfig, mechanisms)):
        register_presets(CapsuleLSTMModel, mechanisms, {f"{name}_lstm": on})
