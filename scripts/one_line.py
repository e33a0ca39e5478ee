"""Clean a Chinese text into one line."""

import re
import unicodedata

SPACES = re.compile(r"\s+")


def one_line(text):
    """Return the text without control and format characters, with white space as single spaces."""
    spaced = SPACES.sub(" ", text)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cf")).split())
