"""Writing of files that are complete when their name exists."""

import contextlib
import itertools
import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and move it to `path`.

    Raises:
        OSError: the file could not be written. An older file of that name is unchanged.
    """
    for number in itertools.count():
        part = path.with_name(f".{path.name}.{os.getpid()}-{number}.part")
        try:
            stream = open(part, "xb")  # never a file or a link that is already there
            break
        except FileExistsError:
            continue
    try:
        with stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # the new name must not reach the disk before the content
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
