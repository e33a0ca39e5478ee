"""Detokenising by Moses."""

import functools
import re
from typing import Any

# Chinese punctuation has its spacing in the character. Moses leaves a space on both sides.
_FULL_WIDTH = re.compile(" ?([‘’“”\u2026\u3001-\u3020\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]) ?")


def detokenise(language: str, line: str) -> str:
    """Detokenise a line of a language, such as `zh`, and convert XML escapes such as `&apos;` to characters."""
    text: str = _detokeniser(language).detokenize(line.split())
    return _FULL_WIDTH.sub(r"\1", text) if language == "zh" else text


@functools.cache
def _detokeniser(language: str) -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(language)
