"""What a binarised data folder tells by its files' names."""

import hashlib
import re
from pathlib import Path

_TRAINING = re.compile(r"train\.(?P<source>[^.-]+)-(?P<target>[^.-]+)\.(?P<language>[^.]+)\.bin")


def pairs(data: Path) -> list[tuple[str, str]]:
    """The language pairs of the training sets in it."""
    found = (_TRAINING.fullmatch(path.name) for path in data.glob("train.*.bin"))
    return sorted({(match["source"], match["target"]) for match in found if match})


def other_pair(data: Path, source: str, target: str) -> tuple[str, str] | None:
    """The pair of the folder, in the direction nearer to the named one; None where the folder has the named one.

    fairseq takes either language of a pair as the source.
    """
    there = pairs(data)
    if not there or (source, target) in there or (target, source) in there:
        return None
    directions = [pair for first, second in there for pair in ((first, second), (second, first))]
    return max(directions, key=lambda pair: (pair[0] == source) + (pair[1] == target))


def fingerprint(data: Path) -> str:
    """Of the dictionaries, the training and the validation sets."""
    digest = hashlib.sha256()
    names = ("dict.*.txt", "train*.bin", "valid*.bin")
    for path in sorted({path for pattern in names for path in data.glob(pattern)}):
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:12]
