"""Values of options: what each may be, and the texts that name sets of layers."""

import re
from dataclasses import Field, fields
from enum import Enum
from typing import Any, List, Type, TypeVar

from fairseq.dataclass import FairseqDataclass

from fairseq_capsule.errors import UserError
from fairseq_capsule.number_sets import number_set

Config = TypeVar("Config", bound=FairseqDataclass)

# What any option may be, by its name; None is left to fairseq.
PROBABILITIES = re.compile(r".*(dropout|layerdrop).*")
ITERATIONS = re.compile(r".*_iterations")
SIZES = re.compile(r".*_(layers|positions|dim|size|heads|capsules|sublayers)")
MAY_BE_0 = ("base_layers",)  # beside options whose metadata has another "lowest"
MOST_ITERATIONS = 100


def _check_range(item: Field, value: Any) -> None:
    name = item.name
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
    """`config` (a DictConfig, a namespace or a preset's object) as an object whose `__post_init__` has checked it.

    Choices become plain strings. Numbers are in their range: probabilities, sizes and iterations here, by their names;
    what one option asks of another in `__post_init__`.

    Raises:
        UserError: a value that is not allowed.
    """
    values = {}
    for item in fields(dataclass_type):
        if hasattr(config, item.name):
            value = getattr(config, item.name)
            if isinstance(item.type, type) and issubclass(item.type, Enum):
                value = _choice(item.name, value, [member.value for member in item.type])
            _check_range(item, value)
            values[item.name] = value
    return dataclass_type(**values)


def _choice(name: str, value: Any, allowed: List[str]) -> str:
    if str(value) not in allowed:
        raise UserError(f"{option(name)} must be one of {', '.join(allowed)}, not {value!s}")
    return str(value)


def option(name: str) -> str:
    """A field's name as the command line has it."""
    return "--" + name.replace("_", "-")


def layer_set(name: str, text: str, layers: int) -> List[int]:
    """Layer numbers, counted from 1, of a text such as `all`, `1-3` or `1,4-6`.

    Raises:
        UserError: not of that form, or a layer outside 1 to `layers`.
    """
    chosen = number_set("1-" + str(layers) if text == "all" else text, 1, layers)
    if chosen is None:
        raise UserError(f"{option(name)}: {text!r} must name layers from 1 to {layers}; write all, 1-3 or 1,4-6")
    return chosen
