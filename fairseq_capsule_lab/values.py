"""Checks of single values. A wrong one is a `UserError` that names it."""

import os
import re
from pathlib import Path
from typing import Any

from capsule_routing.errors import UserError

# Characters with a special meaning in Hydra or OmegaConf; fairseq splits paths at colons.
SPECIAL = frozenset("\"$'*:;<>?\\^`{|}")


def shown(value: Any, most: int = 80) -> str:
    """A value for a message, cut to `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def checked_integer(name: str, value: Any, low: int = 1) -> int:
    """A whole number from `low` on, from an int or decimal digits. Another value is a UserError."""
    written = isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value, re.ASCII)
    count = int(value) if written else value
    if type(count) is int and count >= low:
        return count
    kind = "a positive whole number" if low == 1 else f"a whole number from {low} on"
    raise UserError(f"{name} must be {kind}, not '{shown(value)}'")


def checked_name(what: str, value: str) -> str:
    """A name of a measure or a licence: letters, digits and `_`, after the first character also `-.+=`.

    Another value, such as a path or an option, is a UserError.
    """
    if re.fullmatch(r"\w[\w.+=-]{0,99}", value):
        return value
    raise UserError(f"{what} must be a name (letters, digits and _-.+=), not '{shown(value)}'")


def checked_path(what: str, path: str | Path) -> Path:
    """The absolute path of a file or folder that fairseq opens.

    fairseq passes every path through Hydra and OmegaConf several times, which removes any quoting. So a path with a
    character that has a special meaning is a UserError.
    """
    absolute = os.path.abspath(path)
    for character in absolute:
        if character in SPECIAL or not character.isprintable():
            raise UserError(f"{what} {shown(absolute)}: fairseq cannot open a path with {ascii(character)}; rename it")
    return Path(absolute)


def quoted(path: Path) -> str:
    """A path that `checked_path` allows, quoted for Hydra."""
    return f"'{path}'"
