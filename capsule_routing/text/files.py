"""Reading of files that users name."""

import codecs
import os
import stat
from pathlib import Path
from typing import List, Union

from capsule_routing.errors import UserError


def regular_file(path: Union[str, Path]) -> Path:
    """Return the path of an input. A folder, a pipe or a device, which may never end, raises a UserError.

    A missing one raises an OSError. Several inputs are read twice.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: a {'folder' if stat.S_ISDIR(mode) else 'pipe or a device'}; name a file")
    return Path(path)


def refuse_utf_16(path: Union[str, Path], start: bytes) -> None:
    """Raise a UserError if a text starts as UTF-16 does: with its byte order mark, or with many zero bytes."""
    start = start[:100]
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 3 * start.count(0) > len(start):
        raise UserError(f"{path}: UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8")


def read_lines(path: Union[str, Path]) -> List[str]:
    """Read the lines of a UTF-8 text. An empty file, or one that is not UTF-8, raises a UserError that names the line.

    Only line feeds separate lines, because a sentence may contain other separators of Unicode.
    """
    content = Path(path).read_bytes()
    refuse_utf_16(path, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        remedy = "convert it: iconv -f LATIN1 -t UTF-8"
        raise UserError(f"{path}, line {line}: not UTF-8 ({error.reason}); {remedy}") from None
    if not text.strip():
        raise UserError(f"{path}: empty; give a file with one sentence on each line")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
