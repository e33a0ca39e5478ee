"""Facts about a binarised data folder, from the names and contents of its files."""

import hashlib
import re
from pathlib import Path

_TRAINING = re.compile(r"train\.(?P<source>[^.-]+)-(?P<target>[^.-]+)\.(?P<language>[^.]+)\.bin")


def pairs(data: Path) -> list[tuple[str, str]]:
    """The language pairs of the training sets in the folder."""
    found = (_TRAINING.fullmatch(path.name) for path in data.glob("train.*.bin"))
    return sorted({(match["source"], match["target"]) for match in found if match})


def other_pair(data: Path, source: str, target: str) -> tuple[str, str] | None:
    """The pair of the folder, in the direction closer to the named pair; None if the folder has the named pair.

    In fairseq, either language of a pair can be the source.
    """
    there = pairs(data)
    if not there or (source, target) in there or (target, source) in there:
        return None
    directions = [pair for first, second in there for pair in ((first, second), (second, first))]
    return max(directions, key=lambda pair: (pair[0] == source) + (pair[1] == target))


def dictionaries_differ(data: Path, source: str, target: str) -> bool:
    """Whether the dictionaries of two languages differ in their words or their order. A missing one is ignored."""
    files = [path for language in (source, target) if (path := data / f"dict.{language}.txt").is_file()]
    # A line is a word and its count.
    words = {tuple(line.rpartition(b" ")[0] for line in path.read_bytes().splitlines()) for path in files}
    return len(words) > 1


def fingerprint(data: Path) -> str:
    """The first 12 hex digits of a SHA-256 over the dictionaries, the training sets and the validation sets."""
    digest = hashlib.sha256()
    names = ("dict.*.txt", "train*.bin", "valid*.bin")
    for path in sorted({path for pattern in names for path in data.glob(pattern)}):
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:12]
