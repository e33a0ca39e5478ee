"""Options of models and commands: their names, allowed ranges, and sets of whole numbers such as `1-3` or `1,4-6`.

The module imports neither torch nor fairseq, because commands that work without torch use it for their arguments.
"""

import itertools
import re
from dataclasses import Field, field, fields
from enum import Enum
from typing import Any, Dict, Iterable, List, Mapping, Optional, Type, TypeVar

from fairseq_capsule.errors import UserError

MOST_ITERATIONS = 100  # of a routing


def number_ranges(text: str, lowest: int, highest: int) -> Optional[List[range]]:
    """Parse a text such as `1-3` or `1,4-6` into ranges, which are not expanded because they may be long.

    The result is None if the text has another form or names a number outside `lowest` to `highest`.
    """
    ranges = []
    for part in text.split(","):
        numbers = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part, re.ASCII)
        if not numbers:
            return None
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if not lowest <= first <= last <= highest:
            return None
        ranges.append(range(first, last + 1))
    return ranges


def number_set(text: str, lowest: int, highest: int) -> Optional[List[int]]:
    """Parse a text as `number_ranges` does, and return its numbers sorted and without duplicates, or None."""
    ranges = number_ranges(text, lowest, highest)
    return None if ranges is None else sorted(set().union(*ranges))


def as_ranges(numbers: Iterable[int]) -> str:
    """The shortest text that `number_set` parses to these numbers."""
    runs = itertools.groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    ends = ([number for _, number in run] for _, run in runs)
    return ",".join(f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in ends)


Config = TypeVar("Config")  # a dataclass

# The allowed range follows from the name of the option. None is left to fairseq.
PROBABILITIES = re.compile(r".*(dropout|layerdrop).*")
ITERATIONS = re.compile(r".*_iterations")
SIZES = re.compile(r".*_(layers|positions|dim|size|heads|capsules|sublayers)")
MAY_BE_0 = ("base_layers",)  # other options set "lowest" in their metadata


def _check_range(item: "Field[Any]", value: Any) -> None:
    name = item.name
    if item.type is int and isinstance(value, float):
        raise UserError(f"{option(name)} must be a whole number, not {value}")
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if PROBABILITIES.fullmatch(name) and not 0 <= value < 1:
        raise UserError(f"{option(name)} must be at least 0 and below 1, not {value}")
    lowest = 0 if name in MAY_BE_0 else item.metadata.get("lowest", 1)
    if (SIZES.fullmatch(name) or ITERATIONS.fullmatch(name)) and not value >= lowest:
        raise UserError(f"{option(name)} must be at least {lowest}, not {value}")
    if ITERATIONS.fullmatch(name) and value > MOST_ITERATIONS:
        raise UserError(f"{option(name)} must be at most {MOST_ITERATIONS}, not {value}")


def validated(config: Any, dataclass_type: Type[Config]) -> Config:
    """Check a config (a DictConfig, a namespace or a preset's object) and convert it to `dataclass_type`.

    Choices and other values of text options become plain strings. Ranges of probabilities, sizes and iterations follow
    from the names of the options. `__post_init__` of the dataclass checks dependencies between options.

    Raises:
        UserError: a value is not allowed.
    """
    values = {}
    for item in fields(dataclass_type):  # type: ignore[arg-type]
        if hasattr(config, item.name):
            value = getattr(config, item.name)
            if isinstance(item.type, type) and issubclass(item.type, Enum):
                allowed = [member.value for member in item.type]
                if str(value) not in allowed:
                    raise UserError(f"{option(item.name)} must be one of {', '.join(allowed)}, not {value!s}")
                value = str(value)
            _check_range(item, value)
            if item.type in (str, Optional[str]) and value is not None:
                value = str(value)  # a set of layers may be one number
            values[item.name] = value
    return dataclass_type(**values)


def setting(default: Any, text: str, **metadata: Any) -> Any:
    """Return a field of a dataclass of options: its default, its help text and further metadata."""
    return field(default=default, metadata={"help": text, **metadata})


def option(name: str) -> str:
    """Return the command-line option of a field: `past_future` gives `--past-future`."""
    return "--" + name.replace("_", "-")


def layer_set(name: str, text: str, layers: int) -> List[int]:
    """Parse a set of layers, such as `all`, `1-3` or `1,4-6`, into layer numbers from 1 to `layers`.

    Raises a UserError if the text has another form, or names another layer.
    """
    chosen = number_set("1-" + str(layers) if text == "all" else text, 1, layers)
    if chosen is None:
        raise UserError(f"{option(name)}: {text!r} must name layers from 1 to {layers}; write all, 1-3 or 1,4-6")
    return chosen


# Readings of the papers: options that change what the same paper means, and that older checkpoints do not have.
# For each, an option that marks the models that have it, and the value of models trained without it.
READINGS = {
    "decoder_norms": ("decoder_context", "after"),
    "guided_reduction": ("guided_heads", "sum"),
}


def readings(options: Any) -> Dict[str, str]:
    """Return the readings of a model, by option; without those that have no effect in it.

    Args:
        options: of the model: a config, a mapping or a Namespace.
    """
    values = options if isinstance(options, Mapping) else getattr(options, "__dict__", {})
    return {
        name: str(values[name])
        for name, (marker, _) in READINGS.items()
        if name in values and str(values.get(marker)) != "none"
    }


def in_words(chosen: Mapping[str, str]) -> str:
    """Return readings as options of the command line."""
    return " ".join(f"{option(name)} {value}" for name, value in chosen.items())
