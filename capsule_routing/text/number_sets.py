"""Texts for sets of whole numbers: `1-3`, `1,4-6`."""

import itertools
import re
from typing import Iterable, List, Optional, Set


def number_set(text: str, lowest: int, highest: int) -> Optional[List[int]]:
    """Parse a text such as `1-3` or `1,4-6`, and return its numbers sorted and without duplicates.

    The result is None for another form, or a number outside `lowest` to `highest`.
    """
    found: Set[int] = set()
    for part in text.split(","):
        numbers = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part, re.ASCII)
        if not numbers:
            return None
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if not lowest <= first <= last <= highest:
            return None
        found.update(range(first, last + 1))
    return sorted(found)


def as_ranges(numbers: Iterable[int]) -> str:
    """The shortest text that `number_set` parses to these numbers."""
    runs = itertools.groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    ends = ([number for _, number in run] for _, run in runs)
    return ",".join(f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in ends)
