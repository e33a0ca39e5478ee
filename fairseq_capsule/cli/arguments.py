"""Types of arguments, one for each kind: numbers, sets of numbers, texts, files and folders.

A wrong number or text is argparse's to report, with the option's name. A wrong file or folder raises a `UserError` that
names it, before the command does anything.
"""

import argparse
import math
import os
import re
import stat
import unicodedata
from pathlib import Path
from typing import Callable, List

from fairseq_capsule.errors import UserError
from fairseq_capsule.number_sets import number_ranges

# fairseq's names of the subwords that it joins.
SUBWORDS = ["subword_nmt", "sentencepiece", "none"]
MOST = 10**9  # of a number that nothing smaller bounds
MOST_SEED = 2**32 - 1  # numpy's
MOST_NUMBERS = 10_000  # in a set of numbers
MOST_ITERATIONS = 100
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
    """An argparse type: a set of whole numbers from `least` to `most`, as `1-5` or `1,3,5-7`, in order and each once.

    A range is expanded when it is known to be short.
    """

    def parse(text: str) -> List[int]:
        ranges = number_ranges(text, least, most)
        if ranges is None:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is no set of whole numbers from {least} to {most}, such as 1-5 or 1,3"
            )
        if sum(map(len, ranges)) > most_numbers:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is more than {most_numbers} numbers")
        return sorted(set().union(*ranges))

    return parse


positive_int = whole_number(1, MOST)
beam_size = whole_number(1, 1000)
percentage = number(0, 100)

# --- texts -----------------------------------------------------------------------------------------------------------


def unicode_text(text: str) -> str:
    """An argparse type: what can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from error
    return text


def label(text: str) -> str:
    """An argparse type: a name of one line, as of a split or a system."""
    if not _is_plain(text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no name: it is empty, or has control characters")
    return text


def language_code(text: str) -> str:
    """An argparse type: `de`, `pt_BR`, `zh-Hans`. Moses has general rules for a language that it does not know."""
    if not re.fullmatch("[A-Za-z]+([_-][A-Za-z0-9]+)*", text) or len(text) > LONGEST_LANGUAGE:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no name of a language, such as de or pt_BR")
    return text


def language_of(reference: Path) -> str:
    """The language that a file's name ends with, as in `test.de`.

    Raises:
        UserError: it ends with none.
    """
    ending = reference.suffix[1:]
    if not re.fullmatch("[a-z]{2}([_-][A-Za-z0-9]+)*", ending):
        raise UserError(f"--lang is missing, and {reference} does not end with a language as test.de does: name it")
    return ending


# --- files and folders -----------------------------------------------------------------------------------------------


def input_file(text: str) -> Path:
    """An argparse type: a file, or a pipe, that can be read."""
    path = _existing(text)
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise UserError(f"{path}: a folder; name a file")
    if not stat.S_ISREG(kind) and not stat.S_ISFIFO(kind):
        raise UserError(f"{path}: a device; name a file")
    _require(os.R_OK, path, "read")
    return path


def input_folder(text: str) -> Path:
    """An argparse type: a folder that can be read."""
    path = _existing(text)
    if not path.is_dir():
        raise UserError(f"{path}: not a folder; name a folder")
    _require(os.R_OK | os.X_OK, path, "read")
    return path


def input_path(text: str) -> Path:
    """An argparse type: a file or a folder that can be read."""
    return input_folder(text) if _existing(text).is_dir() else input_file(text)


def output_folder(text: str) -> Path:
    """An argparse type: a folder that is there, or can be made, and can be written."""
    path = _path(text)
    above = next(place for place in (path, *path.parents) if os.path.lexists(place) or place == Path())
    if not above.is_dir():
        raise UserError(f"{above}: not a folder; name a folder, or a new name")
    _require(os.W_OK | os.X_OK, above, "written")
    return path


def output_file(text: str) -> Path:
    """An argparse type: a file that can be written, or be made in a folder that is there."""
    path = _path(text)
    if path.is_dir():
        raise UserError(f"{path}: a folder; name a file")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no folder, so no place for {path.name}; make it or choose another")
    _require(os.W_OK, path if path.exists() else path.parent, "written")
    return path


def _path(text: str) -> Path:
    if not _is_plain(text):
        raise UserError(
            f"{text[:200]!r} is no name for a file or folder here: empty, not UTF-8, or with control characters"
        )
    return Path(text)


def _is_plain(text: str) -> bool:
    """Whether a name can be printed within a line, and written as UTF-8."""
    return bool(text) and not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _existing(text: str) -> Path:
    path = _path(text)
    path.lstat()  # an OSError that names it and says why
    if not path.exists():
        raise UserError(f"{path}: a link to nothing; name a file or folder that is there")
    return path


def _require(access: int, path: Path, what: str) -> None:
    if not os.access(path, access):
        raise UserError(f"{path}: cannot be {what}; change its permissions, or name another")
