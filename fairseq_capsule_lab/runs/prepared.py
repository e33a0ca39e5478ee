"""Facts about binarised data: which languages a folder has."""

import re
from pathlib import Path

_BINARISED = re.compile(r"[^.]+\.([^.-]+)-([^.-]+)\.[^.]+\.bin")


def pairs(binarised: Path, split: str = "train") -> list[tuple[str, str]]:
    """The language pairs of a binarised folder, from the names of the files of a split (`*`: of any)."""
    matches = (_BINARISED.fullmatch(path.name) for path in binarised.glob(f"{split}.*.bin"))
    return sorted({(match[1], match[2]) for match in matches if match})
