"""Reading the tables."""

import re
from typing import Iterator, List, Set


def rows(table: str) -> Iterator[List[str]]:
    """The columns of each line that is neither empty nor a remark."""
    for line in table.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            yield re.split(r"\s{2,}", line.strip())


def notes(columns: List[str], known: Set[str]) -> dict:
    """The third column, `un ness noun=translation`, as a dictionary; a note without a value has an empty one."""
    pairs = [note.partition("=") for note in (columns[2].split() if len(columns) > 2 else [])]
    unknown = {name for name, _, _ in pairs} - known
    if unknown:
        raise ValueError(f"{columns[0]}: unknown note {sorted(unknown)[0]!r}; known: {', '.join(sorted(known))}")
    return {name: value for name, _, value in pairs}
