"""What is left of a text of Chinese when it has to be one line."""

import re
import unicodedata

SPACES = re.compile(r"\s+")


def one_line(text):
    """The text without control and format characters, its white space single spaces."""
    spaced = SPACES.sub(" ", text)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cf")).split())
