"""Unpacking of a tar archive with a model."""

import lzma
import os
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path, PurePosixPath

from capsule_routing.errors import UserError

MOST_EXPANSION = 1000  # an archive of parameters and dictionaries shrinks to a tenth at most


def unpack(name: str, path: Path) -> None:
    """Replace a tar archive by a folder with its files. If one folder contains all files, it is that folder.

    Only folders and regular files are unpacked, under relative names. Anything else, or more than `MOST_EXPANSION`
    times the archive's size, raises a UserError. Then the archive is unchanged, and nothing of what was unpacked is
    left. Messages call it `name`.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=os.path.dirname(os.path.abspath(path))) as beside:
            folder = Path(beside) / "files"
            folder.mkdir()
            with tarfile.open(path) as archive:
                _write_members(name, archive, folder, MOST_EXPANSION * os.path.getsize(path))
            inside = list(folder.iterdir())
            if not inside:
                raise tarfile.ReadError("it is empty")
            if len(inside) == 1 and inside[0].is_dir():
                folder = inside[0]
            os.remove(path)
            folder.rename(path)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise UserError(f"{name}: neither a folder nor a tar archive ({error}); name a folder") from error
    except OSError as error:  # also a wrong checksum
        raise UserError(f"{name}: not unpacked: {error}; unpack it yourself and name the folder") from error


def _write_members(name: str, archive: tarfile.TarFile, folder: Path, most: int) -> None:
    for member in archive:
        place = PurePosixPath(member.name)
        plain = member.name.isprintable() and not place.is_absolute() and ".." not in place.parts
        if not (plain and (member.isdir() or member.isreg() and member.sparse is None)):
            problem = f"{member.name[:80]!r} in it is not a file or folder inside the archive"
            raise UserError(f"{name}: not unpacked: {problem}; unpack it yourself and name the folder")
        most -= member.size
        if most < 0:
            raise UserError(f"{name}: not unpacked: it would be more than {MOST_EXPANSION} times as large")
        content, target = archive.extractfile(member), folder / place
        (target.parent if content else target).mkdir(parents=True, exist_ok=True)  # a folder has no content
        if content:
            with open(target, "wb") as stream:  # nothing in this new folder is a link
                shutil.copyfileobj(content, stream)
