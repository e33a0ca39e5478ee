"""Types of arguments that several commands take."""

import argparse
import re
from pathlib import Path
from typing import List

from fairseq_capsule.errors import UserError

# fairseq's names of the subwords that it joins.
SUBWORDS = ["subword_nmt", "sentencepiece", "none"]


def positive_int(text: str) -> int:
    """An argparse type: a whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def unicode_text(text: str) -> str:
    """An argparse type: what can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from error
    return text


def language_code(text: str) -> str:
    """An argparse type: `de`, `en`. Moses' rules take any other name for a language without rules of its own."""
    if not re.fullmatch("[a-z]{2}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no language code of two letters")
    return text


def language_of(reference: Path) -> str:
    """The language that a file's name ends with, as in `test.de`.

    Raises:
        UserError: it ends with none.
    """
    ending = reference.suffix[1:]
    if not re.fullmatch("[a-z]{2}", ending):
        raise UserError(f"--lang is missing, and {reference} does not end with a language as test.de does: name it")
    return ending


def numbers(text: str) -> List[int]:
    """An argparse type: whole numbers, as `10,20,30`, in order and each once."""
    if not re.fullmatch(r"\d+(,\d+)*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers such as 10,20,30")
    return sorted({int(number) for number in text.split(",")})


def counts(text: str) -> List[int]:
    """An argparse type: whole numbers from 1 on, as `1-5` or `1,3,5-7`, in order and each once."""
    ranges = [re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII) for part in text.split(",")]
    found = sorted({n for found in ranges if found for n in range(int(found[1]), int(found[2] or found[1]) + 1)})
    if not all(ranges) or not found or found[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no set of whole numbers from 1 on, such as 1-5 or 1,3")
    return found
