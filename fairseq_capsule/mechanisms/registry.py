"""The registry of mechanisms, and what their options say about a config. Models, commands and tests read it."""

from dataclasses import fields
from typing import Any, Dict, List, Optional, Set, Tuple

from fairseq_capsule.mechanisms.base import Mechanism


def option_names(*dataclasses: Any) -> Set[str]:
    """Return the names of the options of dataclasses, or of None, which has none. fairseq's `_name` is none."""
    return {item.name for kind in dataclasses if kind for item in fields(kind) if not item.name.startswith("_")}


def off(mechanism: Mechanism) -> Dict[str, Any]:
    """Return the values of options with which a model does not contain a mechanism: their defaults."""
    return {item.name: item.default for item in fields(mechanism.options) if item.name in mechanism.on}


def known_to(mechanism: Mechanism, config: Any) -> bool:
    """Return whether a config has the options of a mechanism."""
    return all(hasattr(config, name) for name in mechanism.on)


_REGISTRY: List[Mechanism] = []


def register_mechanism(mechanism: Mechanism, before: Optional[str] = None) -> Mechanism:
    """Register a mechanism, by default as the last one. A decoder runs the parts in the order of the registry.

    A ValueError says that there is no mechanism `before`, before which to place it.
    """
    names = [other.name for other in _REGISTRY]
    if before is not None and before not in names:
        raise ValueError(f"mechanism {mechanism.name}: there is no mechanism {before} to place it before")
    _REGISTRY.insert(len(names) if before is None else names.index(before), mechanism)
    return mechanism


def mechanisms() -> Tuple[Mechanism, ...]:
    """Return all registered mechanisms, in the order of computation."""
    return tuple(_REGISTRY)


def registered(name: str) -> Mechanism:
    """Return the mechanism of a name; raises a KeyError if there is none."""
    for mechanism in _REGISTRY:
        if mechanism.name == name:
            return mechanism
    raise KeyError(name)


def active_mechanisms(config: Any) -> Tuple[Mechanism, ...]:
    """Return the mechanisms that a model with this config contains."""
    known = (mechanism for mechanism in _REGISTRY if known_to(mechanism, config))
    return tuple(mechanism for mechanism in known if _changed(config, mechanism))


def routing_options(config: Any) -> Set[str]:
    """Return the names of the options of the mechanisms that this config turns on, without those that are off."""
    names: Set[str] = set()
    for mechanism in active_mechanisms(config):
        without_effect = mechanism.on.keys() - _changed(config, mechanism)
        names |= option_names(mechanism.options) - without_effect
    return names


def _changed(config: Any, mechanism: Mechanism) -> Set[str]:
    """Return the options that turn a mechanism on in a config."""
    return {name for name, value in off(mechanism).items() if str(getattr(config, name)) != str(value)}


def check_mechanisms(config: Any) -> None:
    """Raise a UserError if an option of a mechanism has a value that is not allowed."""
    for mechanism in _REGISTRY:
        if known_to(mechanism, config):
            mechanism.check(config)


def options_off(config: Any) -> Dict[str, Any]:
    """Return option values with which a model with this kind of config contains no mechanism."""
    known = (mechanism for mechanism in _REGISTRY if known_to(mechanism, config))
    return {name: value for mechanism in known for name, value in off(mechanism).items()}
