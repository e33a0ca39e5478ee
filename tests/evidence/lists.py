"""The lists of this folder: lines under headings in brackets. A line with {A|B} is one with A and one with B."""

import itertools
import re
from pathlib import Path


def read(name):
    """Return the lines of each heading."""
    sections, heading = {}, None
    for line in (Path(__file__).parent / name).read_text().splitlines():
        if line.startswith("["):
            heading = line[1:].partition("]")[0]
        elif line and not line.startswith("#"):
            sections.setdefault(heading, []).extend(alternatives(line))
    return sections


def alternatives(line):
    pieces = re.split(r"\{([^{}]*\|[^{}]*)\}", line)
    choices = [piece.split("|") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    return ["".join(words) for words in itertools.product(*choices)]
