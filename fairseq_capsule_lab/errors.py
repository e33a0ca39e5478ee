"""The error of the workbench, and checks of single values that raise it in one line that names the value."""

import math
import os
import re
from pathlib import Path
from typing import Any

from capsule_routing.errors import UserError

MOST = 10**9  # for every count; a larger number is a mistake
LARGEST = 1000  # for every other number
DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)  # Python's float takes more, such as 1_0
# ASCII characters without a special meaning in Hydra, OmegaConf or fairseq. fairseq splits paths at colons.
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 /-._+=,@%#~()[]&!")


class LabError(UserError):
    """An error of the workbench that the user can fix. The message is one line: what is wrong, then what to do."""


def shown(value: Any, most: int = 80) -> str:
    """A value for a message, cut to `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def whole(name: str, value: Any, low: int = 1, high: int = MOST) -> int:
    """A whole number from low to high, from an int or decimal digits. Another value is a LabError."""
    written = isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,4000}", value, re.ASCII)
    count = int(value) if written else value
    if type(count) is int and low <= count <= high:
        return count
    kind = "a positive whole number" if low == 1 else f"a whole number from {low} on"
    bound = f" up to {high}" if type(count) is int and count > high else ""
    raise LabError(f"{name} must be {kind}{bound}, not '{shown(value)}'")


def number(name: str, value: Any) -> float:
    """A number from -1000 to 1000, from a number or a text without an exponent. Another value is a LabError."""
    written = isinstance(value, str) and re.fullmatch(r"-?[0-9]{0,18}\.?[0-9]{1,18}", value, re.ASCII)
    read = float(value) if written else value
    if type(read) not in (int, float) or not math.isfinite(read):
        raise LabError(f"{name} must be a number, not '{shown(value)}'")
    if abs(read) > LARGEST:
        raise LabError(f"{name} must be a number from {-LARGEST} to {LARGEST}, not '{shown(value)}'")
    return read


def name(what: str, value: Any) -> str:
    """A name of a language, split, task or folder: letters, digits and `_`, after the first character also `-.+=`.

    Another value, such as a path or an option, is a LabError.
    """
    if isinstance(value, str) and re.fullmatch(r"\w[\w.+=-]{0,99}", value):
        return value
    raise LabError(f"{what} must be a name (letters, digits and _-.+=), not '{shown(value)}'")


def place(what: str, path: str) -> Path:
    """The absolute path of a file or folder that fairseq opens.

    fairseq passes every path through Hydra and OmegaConf several times, which removes any quoting. So a path with a
    character that has a special meaning is a LabError.
    """
    if not path:
        raise LabError(f"{what}: empty; give a path")
    absolute = os.path.abspath(path)
    for character in absolute:
        if not (character in PLAIN or (character > "\x7f" and character.isprintable())):
            problem = f"fairseq cannot open a path with {ascii(character)}"
            allowed = "letters, digits, spaces and -._+=,@%#~()[]&!"
            raise LabError(f"{what} {shown(absolute)}: {problem}; rename it with {allowed}")
    return Path(absolute)


def quoted(path: Path) -> str:
    """A path that `place` allows, quoted for Hydra."""
    return f"'{path}'"
