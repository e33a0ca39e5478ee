"""From words to the text of a sentence."""

import re
from typing import List

COMMA = ","


def sentence_text(words: List[str], punctuation: str) -> str:
    """Join words, attach commas, begin with a capital; a comma is written once, and not at either end."""
    text = re.sub("( ,)+", ",", " " + " ".join(words)).strip(" ,")
    return text[0].upper() + text[1:] + punctuation
