"""Reading and writing files so that an error names the file, and no half-written file is taken for a whole one."""

import contextlib
import os
from pathlib import Path
from typing import List, Union

from fairseq_capsule.errors import UserError


def read_lines(path: Union[str, Path]) -> List[str]:
    """The lines of a UTF-8 text, split at line feeds only: other separators of Unicode may stand inside a sentence.

    Raises:
        UserError: nothing in it, or not UTF-8; the latter with the line's number.
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
        raise UserError(f"{path}: empty; give a file with one sentence a line")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def write_whole(path: Union[str, Path], content: bytes) -> None:
    """Write a file beside its final place, then move it there: whoever sees the name sees all of it.

    Raises:
        UserError: it could not be written; an older file of that name is as it was.
    """
    target = Path(os.path.realpath(path))
    # A device such as /dev/stdout is written to, not replaced.
    in_place = target.exists() and not target.is_file()
    written = target if in_place else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(written, "wb") as stream:
            stream.write(content)
            if not in_place:
                stream.flush()
                os.fsync(stream.fileno())  # the new name must not reach the disk before the content
        if not in_place:
            os.replace(written, target)
    except OSError as error:
        raise UserError(f"{path}: not written: {error.strerror}; choose another place for the output") from error
    finally:
        if not in_place:
            with contextlib.suppress(OSError):  # it is not there: moved, or never made
                written.unlink()
