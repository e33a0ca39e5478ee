"""Facts about binarised data: which languages a folder has."""

import re
from pathlib import Path

_BINARISED = re.compile(r"[^.]+\.([^.-]+)-([^.-]+)\.[^.]+\.bin")


def pairs(binarised: Path, split: str = "train") -> list[tuple[str, str]]:
    """The language pairs of a binarised folder, from the names of the files of a split (`*`: of any)."""
    matches = (_BINARISED.fullmatch(path.name) for path in binarised.glob(f"{split}.*.bin"))
    return sorted({(match[1], match[2]) for match in matches if match})


def other_pair(binarised: Path, source: str, target: str) -> tuple[str, str] | None:
    """The pair of the folder, in the direction closer to the named pair; None if the folder has the named pair.

    In fairseq, either language of a pair can be the source.
    """
    directions = [pair for first, second in pairs(binarised) for pair in ((first, second), (second, first))]
    if not directions or (source, target) in directions:
        return None
    return max(directions, key=lambda pair: (pair[0] == source) + (pair[1] == target))


def dictionaries_differ(binarised: Path, source: str, target: str) -> bool:
    """Whether the dictionaries of two languages differ in their words or their order. A missing one is ignored."""
    files = [path for language in (source, target) if (path := binarised / f"dict.{language}.txt").is_file()]
    # A line is a word and its count.
    words = {tuple(line.rpartition(b" ")[0] for line in path.read_bytes().splitlines()) for path in files}
    return len(words) > 1
