"""Types of arguments that several commands take."""

import argparse
import re


def positive_int(text: str) -> int:
    """An argparse type: a whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def language_code(text: str) -> str:
    """An argparse type: `de`, `en`. Moses' rules take any other name for a language without rules of its own."""
    if not re.fullmatch("[a-z]{2}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no language code of two letters")
    return text
