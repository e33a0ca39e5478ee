"""Options of models: names, ranges, sets of layers."""

from dataclasses import field, fields
from enum import Enum
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar

from capsule_routing.errors import UserError
from capsule_routing.text.number_sets import number_set

MOST_ITERATIONS = 100  # of a routing
RANGE = {"lowest", "above", "highest", "probability"}  # keys in the metadata of a field

Config = TypeVar("Config")  # a dataclass


def validated(config: Any, dataclass_type: Type[Config]) -> Config:
    """Check a config (a DictConfig, a namespace or a preset's object) and convert it to `dataclass_type`.

    Choices and other values of text options become plain strings. `__post_init__` of the dataclass checks dependencies
    between options. A value that is not allowed raises a UserError.
    """
    check_ranges(config, dataclass_type)
    values = {}
    for item in fields(dataclass_type):  # type: ignore[arg-type]
        if not hasattr(config, item.name):
            continue
        value, needed = getattr(config, item.name), None
        if isinstance(item.type, type) and issubclass(item.type, Enum):
            allowed, value = [member.value for member in item.type], str(value)
            needed = None if value in allowed else f"one of {', '.join(allowed)}"
        elif item.type is int and isinstance(value, float):
            needed = "a whole number"
        if needed is not None:
            raise UserError(f"{option(item.name)} must be {needed}, not {value}")
        as_text = item.type in (str, Optional[str]) and value is not None  # a set of layers may be one number
        values[item.name] = str(value) if as_text else value
    return dataclass_type(**values)


def check_ranges(config: Any, dataclass_type: Type[Any]) -> None:
    """Raise a UserError if a number in a config is outside the range of its field (see `setting`)."""
    for item in fields(dataclass_type):
        if item.metadata.keys() & RANGE:
            value = getattr(config, item.name, None)
            needed = _out_of_range(item.metadata, value) if isinstance(value, (int, float)) else None
            if needed is not None:
                raise UserError(f"{option(item.name)} must be {needed}, not {value}")


def _out_of_range(metadata: Mapping[str, Any], value: float) -> Optional[str]:
    """Return what a number must be by the metadata of its field, or None if it is allowed. NaN never is."""
    if "probability" in metadata and not 0 <= value < 1:
        return "at least 0 and below 1"
    if "lowest" in metadata and not value >= metadata["lowest"]:
        return f"at least {metadata['lowest']}"
    if "above" in metadata and not value > metadata["above"]:
        return f"above {metadata['above']}"
    if "highest" in metadata and not value <= metadata["highest"]:
        return f"at most {metadata['highest']}"
    return None


def setting(default: Any, text: str, **metadata: Any) -> Any:
    """Return a field of a dataclass of options: its default, its help text and its range.

    The range of a number is `lowest` or `above`, and `highest`; or `probability=True` for at least 0 and below 1.
    """
    return field(default=default, metadata={"help": text, **metadata})


def iterations(default: int, text: str) -> Any:
    """Return the field of a number of routing iterations."""
    return setting(default, text, lowest=1, highest=MOST_ITERATIONS)


def compile_option() -> Any:
    """Return the field of the option that compiles the routing of a model."""
    return setting(False, "compile attention routing and guided routing in training, which pays on a GPU")


def option(name: str) -> str:
    """Return the command-line option of a field: `past_future` gives `--past-future`."""
    return "--" + name.replace("_", "-")


def layer_set(name: str, text: str, layers: int) -> List[int]:
    """Parse a set of layers, `all`, `1-3` or `1,4-6`, into numbers from 1 to `layers`; raise a UserError for others."""
    chosen = number_set("1-" + str(layers) if text == "all" else text, 1, layers)
    if chosen is None:
        raise UserError(f"{option(name)}: {text!r} must name layers from 1 to {layers}; write all, 1-3 or 1,4-6")
    return chosen


# Interpretations of the papers, which are shown with a model: for each, an option that is "none" if it has no effect.
INTERPRETATIONS = {"decoder_norms": "decoder_context", "guided_reduction": "guided_heads"}


def interpretations(options: Any) -> Dict[str, str]:
    """Return the interpretations in a model's options (a config, mapping or Namespace); without those of no effect."""
    values = options if isinstance(options, Mapping) else getattr(options, "__dict__", {})
    known = {name: marker for name, marker in INTERPRETATIONS.items() if name in values}
    return {name: str(values[name]) for name, marker in known.items() if str(values.get(marker)) != "none"}


def in_words(chosen: Mapping[str, str]) -> str:
    """Return interpretations as options of the command line."""
    return " ".join(f"{option(name)} {value}" for name, value in chosen.items())
