"""The dictionaries of binarised data, each read by this one function, which says what is wrong with it."""

import re
from pathlib import Path
from typing import Dict, Union

from fairseq.data import Dictionary

from fairseq_capsule.errors import UserError
from fairseq_capsule.files import read_lines

ENTRY = re.compile(r"(?P<symbol>[^\r]+) \d{1,18}(?P<overwrite> #fairseq:overwrite)?\s*", re.ASCII)
REMEDY = "copy the dictionary again from the run that made it"


def read_dictionary(path: Union[str, Path]) -> Dictionary:
    """A dictionary of fairseq-preprocess.

    Raises:
        UserError: not UTF-8, empty, a line that is not `SYMBOL COUNT`, or a symbol that stands there twice.
        OSError: it cannot be read.
    """
    seen = dict.fromkeys(Dictionary().symbols, 0)
    for number, line in enumerate(read_lines(path), start=1):
        entry = ENTRY.fullmatch(line)
        if not entry:
            raise UserError(f"{path}, line {number}: {line[:40]!r} is not 'SYMBOL COUNT'; {REMEDY}")
        symbol = entry["symbol"]
        if symbol in seen and not entry["overwrite"]:
            first = f"in line {seen[symbol]} already" if seen[symbol] else "one of fairseq's own symbols"
            raise UserError(f"{path}, line {number}: {symbol!r} is {first}; {REMEDY}")
        seen[symbol] = number
    return Dictionary.load(str(path))


def read_dictionaries(folder: Path) -> Dict[str, Dictionary]:
    """Language → dictionary of a folder that fairseq-preprocess made.

    Raises:
        UserError: there is none, or one is broken.
    """
    files = sorted(folder.glob("dict.*.txt"))
    if not files:
        raise UserError(f"{folder}: no dict.*.txt in it; name a folder that fairseq-preprocess made")
    return {file.name[len("dict.") : -len(".txt")]: read_dictionary(file) for file in files}
