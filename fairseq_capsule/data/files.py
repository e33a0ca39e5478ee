"""Reading and writing of files. Errors name the file, and a file is written completely or not at all."""

import os
from pathlib import Path
from typing import List, Union

from fairseq_capsule.errors import UserError
from fairseq_capsule_runs.files import replace_file


def read_lines(path: Union[str, Path]) -> List[str]:
    """Read the lines of a UTF-8 text.

    Only line feeds separate lines, because a sentence may contain other separators of Unicode.

    Raises:
        UserError: the file is empty, or is not UTF-8. Then the message names the line.
    """
    content = Path(path).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 ({error.reason}); convert it: iconv -f LATIN1 -t UTF-8"
        ) from None
    if not text.strip():
        raise UserError(f"{path}: empty; give a file with one sentence on each line")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def write_whole(path: Union[str, Path], content: bytes) -> None:
    """Write a file under a temporary name and move it to `path`, so that a file with this name is always complete.

    Raises:
        UserError: the file could not be written. An older file of that name is unchanged.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a device such as /dev/stdout is written to, not replaced
            path.write_bytes(content)
        else:
            replace_file(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise UserError(f"{path}: not written: {error.strerror}; choose another place for the output") from error
