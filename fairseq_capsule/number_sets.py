"""Texts that name sets of whole numbers, such as `1-3` or `1,4-6`.

It imports neither torch nor fairseq, so that the commands that work without torch can read their arguments with it.
"""

import re
from typing import List, Optional


def number_ranges(text: str, lowest: int, highest: int) -> Optional[List[range]]:
    """The ranges of a text such as `1-3` or `1,4-6`; None where it is no such text, or names a number outside `lowest`
    to `highest`. They are not expanded: a range may be long."""
    found = []
    for part in text.split(","):
        numbers = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part, re.ASCII)
        if not numbers:
            return None
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if not lowest <= first <= last <= highest:
            return None
        found.append(range(first, last + 1))
    return found


def number_set(text: str, lowest: int, highest: int) -> Optional[List[int]]:
    """The numbers of `number_ranges`, in order and each once; None as there."""
    ranges = number_ranges(text, lowest, highest)
    return None if ranges is None else sorted(set().union(*ranges))
