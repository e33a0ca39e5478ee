"""The text of a sentence from its words."""

import re
from typing import List

COMMA = ","


def sentence_text(words: List[str], punctuation: str) -> str:
    """Join words, attach commas, capitalise. Repeated commas become one; commas at either end are dropped."""
    text = re.sub("( ,)+", ",", " " + " ".join(words)).strip(" ,")
    return text[0].upper() + text[1:] + punctuation
