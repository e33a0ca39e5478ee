"""Files with the JSON objects that commands print. A damaged one is an error, never left out in silence."""

import contextlib
import json
import math
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from capsule_routing.errors import UserError


def read_object(path: Path) -> Optional[Dict[str, Any]]:
    """The JSON object in a file; None if the file is missing. With another content it is a UserError."""
    if not path.exists():
        return None
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError(f"no object: {content!r}")
        return content


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Read figures of a file. A file without them is a UserError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        remedy = "delete it, and give again the command that wrote it, such as scripts/evaluate.sh"
        raise UserError(f"{path}: damaged, a figure in it is unreadable or missing; {remedy}") from error


def finite(value: Any) -> float:
    """Return a figure of a file; raise a TypeError or a ValueError if it is not a finite number."""
    if not math.isfinite(value):
        raise ValueError(f"not a figure: {value!r}")
    return value
