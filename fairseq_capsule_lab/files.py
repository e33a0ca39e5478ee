"""Writing of files and folders that are complete when their name exists."""

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, Union

from capsule_routing.errors import UserError

Made = TypeVar("Made")


def as_json(record: Any) -> bytes:
    """Return what a folder remembers as the content of a file. A path that is not UTF-8 is read again as it was."""
    return f"{json.dumps(record, indent=1, ensure_ascii=False)}\n".encode(errors="backslashreplace")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and move it to `path`. After an OSError an older file there is unchanged."""
    with replacing(path) as stream:
        stream.write(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that is moved to `path` at the end. After an error, an older file of that name is unchanged."""
    unfinished, stream = _beside(path, lambda new: open(new, "xb"))  # never a file or a link that is already there
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # the new name must not reach the disk before the content
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Make a folder under a temporary name and move it to `path` at the end. After an error nothing of it is left.

    It is an OSError if `path` is a file or a folder with files.
    """
    unfinished, _ = _beside(path, lambda new: new.mkdir(parents=True))
    try:
        yield unfinished
        for file in filter(Path.is_file, unfinished.rglob("*")):
            with open(file, "rb") as stream:
                os.fsync(stream.fileno())
        os.rename(unfinished, path)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _beside(path: Path, make: Callable[[Path], Made]) -> tuple[Path, Made]:
    """Make something under a new temporary name beside `path`."""
    for number in itertools.count():
        unfinished = path.with_name(f".{path.name}.{os.getpid()}-{number}.part")
        with contextlib.suppress(FileExistsError):
            return unfinished, make(unfinished)
    raise AssertionError


def write_whole(path: Union[str, Path], content: bytes) -> None:
    """Write a file as `replace_file` does, or to a device; raise a UserError instead of an OSError."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a device such as /dev/stdout is written to, not replaced
            path.write_bytes(content)
        else:
            replace_file(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise UserError(f"{path}: not written: {error.strerror}; choose another place for the output") from error
