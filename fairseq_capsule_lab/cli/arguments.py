"""Types of command-line arguments: numbers, sets of numbers, texts, files and folders.

argparse reports a wrong number or text, with the option's name. A wrong file or folder raises a `LabError` that names
it, before the command does anything.
"""

import argparse
import math
import os
import re
import stat
import unicodedata
from pathlib import Path
from typing import Callable, List, Optional, Sequence

from fairseq_capsule.options import number_ranges
from fairseq_capsule_lab.errors import LabError

MOST = 10**9  # for a number that has no smaller bound
MOST_SEED = 2**32 - 1  # the largest seed of numpy
MOST_NUMBERS = 10_000  # in a set of numbers
LONGEST_LANGUAGE = 40
DECIMAL = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"

# --- numbers ---------------------------------------------------------------------------------------------------------


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a whole number from `least` to `most`, in decimal digits."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} to {most}")
        return int(text)

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    """An argparse type: a number from `least` to `most`; not NaN."""

    def parse(text: str) -> float:
        found = float(text) if re.fullmatch(DECIMAL, text, re.ASCII) else math.nan
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {least:g} to {most:g}")
        return found

    return parse


def whole_numbers(least: int, most: int, most_numbers: int = MOST_NUMBERS) -> Callable[[str], List[int]]:
    """An argparse type: a set of whole numbers from `least` to `most`, such as `1-5` or `1,3,5-7`, sorted.

    A range is expanded only after its length is checked.
    """

    def parse(text: str) -> List[int]:
        ranges = number_ranges(text, least, most)
        if ranges is None:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not a set of whole numbers from {least} to {most}, such as 1-5 or 1,3"
            )
        if sum(map(len, ranges)) > most_numbers:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} has more than {most_numbers} numbers; give a smaller set")
        return sorted(set().union(*ranges))

    return parse


positive_int = whole_number(1, MOST)
beam_size = whole_number(1, 1000)
percentage = number(0, 100)

# --- texts -----------------------------------------------------------------------------------------------------------


def unicode_text(text: str) -> str:
    """An argparse type: text that can be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from error
    return text


def label(text: str) -> str:
    """An argparse type: a name on one line, such as a split or a system."""
    if not _is_plain(text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a name: it is empty, or has control characters")
    return text


def language_code(text: str) -> str:
    """An argparse type: `de`, `pt_BR`, `zh-Hans`. Moses applies general rules to a language that it does not know."""
    if not re.fullmatch("[A-Za-z]+([_-][A-Za-z0-9]+)*", text) or len(text) > LONGEST_LANGUAGE:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a language code such as de or pt_BR")
    return text


def language_of(reference: Path) -> str:
    """The language in the suffix of a file name, as in `test.de`.

    Raises:
        LabError: the name has no such suffix.
    """
    ending = reference.suffix[1:]
    if not re.fullmatch("[a-z]{2}([_-][A-Za-z0-9]+)*", ending):
        raise LabError(f"--lang is missing, and {reference} does not end with a language as test.de does; give --lang")
    return ending


# --- files and folders -----------------------------------------------------------------------------------------------


def input_file(text: str) -> Path:
    """An argparse type: a readable file or pipe."""
    path = _existing(text)
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise LabError(f"{path}: a folder; name a file")
    if not stat.S_ISREG(kind) and not stat.S_ISFIFO(kind):
        raise LabError(f"{path}: a device; name a file")
    _require(os.R_OK, path, "read")
    return path


def input_folder(text: str) -> Path:
    """An argparse type: a readable folder."""
    path = _existing(text)
    if not path.is_dir():
        raise LabError(f"{path}: not a folder; name a folder")
    _require(os.R_OK | os.X_OK, path, "read")
    return path


def input_path(text: str) -> Path:
    """An argparse type: a readable file or folder."""
    return input_folder(text) if _existing(text).is_dir() else input_file(text)


def output_folder(text: str) -> Path:
    """An argparse type: a writable folder that exists or can be created."""
    path = _path(text)
    above = next(place for place in (path, *path.parents) if os.path.lexists(place) or place == Path())
    if not above.is_dir():
        raise LabError(f"{above}: not a folder; name a folder, or a new name")
    _require(os.W_OK | os.X_OK, above, "written")
    return path


def output_file(text: str) -> Path:
    """An argparse type: a file in an existing writable folder, or a writable device.

    A file is written under a temporary name in its folder, also if it exists.
    """
    path = _path(text)
    if path.is_dir():
        raise LabError(f"{path}: a folder; name a file")
    if not path.parent.is_dir():
        raise LabError(f"{path.parent}: no such folder to write {path.name} in; create it or choose another")
    if path.exists() and not path.is_file():
        _require(os.W_OK, path, "written")
        return path
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise LabError(f"{path}: a link to a folder that does not exist; create it or choose another")
    _require(os.W_OK | os.X_OK, folder, "written")
    return path


def system_names(given: Optional[List[str]], paths: Sequence[Path], parts: int = 1) -> List[str]:
    """The names of --names for files or folders, or by default the last `parts` parts of their paths.

    A file's name is without its suffix if this leaves different names. If names are equal, they have more parts.

    Raises:
        LabError: the names are not different, or not one for each path.
    """
    names = given or _different_ends(paths, parts)
    if len(names) != len(paths) or len(set(names)) < len(names):
        raise LabError(f"--names: give {len(paths)} different names, one for each system: not {' '.join(names)}")
    return names


def _different_ends(paths: Sequence[Path], parts: int) -> List[str]:
    for number in range(parts, parts + max(len(path.parts) for path in paths)):
        ends = [Path(*path.parts[-number:]) for path in paths]
        stems = [end if path.is_dir() else end.with_suffix("") for end, path in zip(ends, paths)]
        for names in (list(map(str, stems)), list(map(str, ends))):
            if len(set(names)) == len(names):
                return names
    return names


def _path(text: str) -> Path:
    if not _is_plain(text):
        raise LabError(
            f"{text[:200]!r} is not a file name: it is empty, not UTF-8, or has control characters; choose another"
        )
    return Path(text)


def _is_plain(text: str) -> bool:
    """Whether a name can be printed on one line and encoded in UTF-8."""
    return bool(text) and not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _existing(text: str) -> Path:
    path = _path(text)
    path.lstat()  # raises an OSError with the path and the reason
    if not path.exists():
        raise LabError(f"{path}: a broken link; name an existing file or folder")
    return path


def _require(access: int, path: Path, what: str) -> None:
    if not os.access(path, access):
        raise LabError(f"{path}: cannot be {what}; change its permissions, or name another")
