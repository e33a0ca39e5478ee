"""Registration of mechanisms from other packages."""

import os
import sys
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_DATACLASS_REGISTRY

import fairseq_capsule  # noqa: F401
from capsule_routing.presets import PLAIN_TRANSFORMERS
from fairseq_capsule import inspection as registry
from fairseq_capsule.inspection import Inspection
from fairseq_capsule.mechanisms.base import Mechanism
from fairseq_capsule.mechanisms.registry import mechanisms, off, option_names, register_mechanism
from fairseq_capsule.models.architectures import register_preset
from fairseq_capsule.models.capsule_lstm import CapsuleLSTMConfig, CapsuleLSTMModel
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerConfig, CapsuleTransformerModel

# Keys of what fairseq's encoders and decoders return, and of what the models add.
RESERVED = frozenset(
    "encoder_out encoder_padding_mask encoder_embedding encoder_states fc_results src_tokens src_lengths sentences "
    "attn inner_states".split()
)


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
        ValueError: an attribute is missing or wrong, another mechanism or model has its name, its preset or one of its
            options, or the inspection is not an `Inspection`.
    """
    for fault in _faults(mechanism):  # the first one counts
        raise ValueError(f"mechanism {fault}")
    for other in mechanisms():
        if other.name == mechanism.name and _same_class(other, mechanism):
            return other
    for fault in _conflicts(mechanism):
        raise ValueError(f"mechanism {mechanism.name}: {fault}")
    if not (inspection is None or isinstance(inspection, Inspection)):
        raise ValueError(f"mechanism {mechanism.name}: the inspection must be an instance of a subclass of Inspection")
    register_mechanism(mechanism, before)
    if inspection is not None:
        registry.INSPECTIONS[mechanism.name] = inspection
    if mechanism.preset is not None:
        add_presets(mechanism.preset, mechanism)
    return mechanism


def _faults(mechanism: Mechanism) -> Iterator[str]:
    """Yield what is wrong with the attributes of a mechanism. Most of it would turn it off in silence."""
    for attribute in ("name", "summary", "options", "on"):
        if not getattr(mechanism, attribute, None):
            yield f"{type(mechanism).__qualname__} has no `{attribute}`; set this attribute in the class"
    name, known = mechanism.name, option_names(mechanism.options)
    if name in RESERVED:
        yield f"{name}: fairseq's encoders or decoders return something of this name; rename it"
    for option in (*mechanism.on, mechanism.iterations):
        if option is not None and option not in known:
            yield f"{name}: there is no option {option}; its options are {', '.join(sorted(known))}"
    for option, value in off(mechanism).items():
        if str(mechanism.on[option]) == str(value):
            yield f"{name}: {option} is {value!r} by default, so `on` must have another value"


def _conflicts(mechanism: Mechanism) -> Iterator[str]:
    """Yield what a mechanism would share with another one, or with a model."""
    own = option_names(mechanism.options)
    for other in mechanisms():
        if other.name == mechanism.name:
            yield f"this name is already registered by {type(other).__module__}; rename it"
        owner = f"the mechanism {other.name} of {type(other).__module__}"
        for option in sorted(own & option_names(other.options)):
            yield f"{owner} has an option {option} too; rename the option"
        for loss in sorted(mechanism.loss_weights.keys() & other.loss_weights.keys()):
            yield f"{owner} has a loss {loss} too; rename the loss"
    for option in sorted(own & option_names(CapsuleTransformerConfig, CapsuleLSTMConfig)):
        yield f"the models already have an option {option}; rename the option"
    taken = MODEL_DATACLASS_REGISTRY.get(f"{mechanism.preset}_transformer_base")
    if taken is not None and not issubclass(taken, mechanism.options):
        yield f"there are architectures {mechanism.preset}_transformer_… already; rename the preset"


def _same_class(mechanism: Mechanism, other: Mechanism) -> bool:
    """Return whether two mechanisms have the same class, perhaps from a module that was imported under two names."""
    # A class of an interactive session has no file.
    modules = (sys.modules.get(type(item).__module__) for item in (mechanism, other))
    files = {file and os.path.realpath(file) for file in (getattr(module, "__file__", None) for module in modules)}
    return type(mechanism).__qualname__ == type(other).__qualname__ and len(files) == 1


def add_presets(name: str, *parts: Mechanism, on: Mapping[str, Any] = {}) -> None:
    """Register architectures that contain several mechanisms, perhaps of several packages.

    Args:
        name: the architectures are `NAME_transformer_base`, `NAME_transformer_big`, `NAME_transformer_tiny` and, if
            fairseq's LSTM can contain all of them, `NAME_lstm`.
        parts: registered mechanisms; all others are off, but those of the package can be turned on.
        on: further values of options, for example of the package's own mechanisms.

    Raises:
        ValueError: a mechanism is not registered, another model has one of these names, or `on` names an option that
            does not exist.
    """
    absent = [part.name for part in parts if part not in mechanisms()]
    if absent:
        raise ValueError(f"presets {name}: {', '.join(absent)} is not registered; call add_mechanism first")
    unknown = on.keys() - option_names(CapsuleTransformerConfig, *_options(parts))
    if unknown:
        raise ValueError(f"presets {name}: there is no option {', '.join(sorted(unknown))}; correct the name")
    own = _options(parts)
    changed = {**{option: value for part in parts for option, value in part.on.items()}, **on}
    for plain, sizes in PLAIN_TRANSFORMERS.items():
        options = {**sizes, **changed}
        register_preset(f"{name}_{plain}", CapsuleTransformerModel, CapsuleTransformerConfig, *own, options=options)
    if all(map(_fits_lstm, parts)) and on.keys() <= option_names(CapsuleLSTMConfig, *own):
        register_preset(f"{name}_lstm", CapsuleLSTMModel, CapsuleLSTMConfig, *own, options=changed)


def _fits_lstm(mechanism: Mechanism) -> bool:
    """Return whether fairseq's LSTM can contain a mechanism: only a part after the decoder that reads no layers."""
    own, none = type(mechanism), Mechanism
    only_decoder = own.decoder is not none.decoder and own.encoder is none.encoder and own.attention is none.attention
    return only_decoder and not mechanism.reads_layers


def _options(parts: Sequence[Mechanism]) -> List[Type[FairseqDataclass]]:
    """Return the dataclasses of the options of mechanisms, without those that all models have."""
    return [part.options for part in parts if not issubclass(CapsuleTransformerConfig, part.options)]
