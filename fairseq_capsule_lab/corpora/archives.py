"""Archives of corpora: in the user's folder or downloaded, checked, and with named members taken out."""

import gzip
import hashlib
import os
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from fairseq_capsule_lab.corpora.parallel import progress_bar
from fairseq_capsule_lab.errors import LabError

CHECKSUMS = Path(__file__).with_name("archives.md5")
RETRIES = 3
TIMEOUT = 30  # seconds without a byte
BLOCK = 1 << 20
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_BROKEN = (EOFError, OSError, zlib.error, tarfile.TarError, zipfile.BadZipFile)


def mirror() -> str:
    """Return the address to download from instead of the archives' own."""
    return os.environ.get("MIRROR", "")


def local_archive(address: str, folder: Path | None, downloads: Path) -> Path:
    """Return the path of an archive with the right checksum: in the folder of --from, or without one downloaded."""
    name = address.rpartition("/")[2]
    file = (folder or downloads) / name
    if not folder and not file.exists():
        downloads.mkdir(exist_ok=True)
        _fetch(f"{mirror()}/{name}" if mirror() else address, file)
    if not file.is_file():
        raise LabError(f"{file} is missing: --from takes a folder with all archives (see --help)")
    # MD5 of archives by their addresses without `https://`. Tests name another list.
    lines = Path(os.environ.get("CAPSULE_CHECKSUMS") or CHECKSUMS).read_text().splitlines()
    checksums = {address: digest for digest, address in map(str.split, lines)}
    expected = checksums.get(address.partition("://")[2])
    if expected:
        with open(file, "rb") as stream:
            actual = hashlib.file_digest(stream, "md5").hexdigest()
        if actual != expected:
            problem = f"wrong checksum, MD5 {actual} instead of {expected}"
            raise LabError(f"{file}: {problem}: delete it and fetch it again")
    return file


def _fetch(address: str, file: Path) -> None:
    part = file.with_name(f"{file.name}.part")
    for attempt in range(RETRIES + 1):
        try:
            _download(address, part)
            break
        except (OSError, ValueError) as error:  # ValueError: not an address
            transient = isinstance(error, TimeoutError) or getattr(error, "code", 0) in _TRANSIENT
            if transient and attempt < RETRIES:
                time.sleep(2**attempt)
                continue
            reason = getattr(error, "reason", None) or error
            reason = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
            remedy = "try again, name another MIRROR=URL, or a folder that has the files by --from"
            raise LabError(f"cannot download {address} ({reason}): {remedy}") from error
    if not _is_whole(file.name, part):
        raise LabError(f"{address} is not a complete archive: try again, or name another MIRROR=URL")
    part.rename(file)


def _download(address: str, part: Path) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "fairseq-capsule"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, open(part, "wb") as stream:
        size = int(answer.headers.get("Content-Length") or 0)
        with progress_bar(None, desc=address, total=size or None, unit="B", unit_scale=True) as bar:
            while block := answer.read(BLOCK):
                stream.write(block)
                bar.update(len(block))
        if stream.tell() < size:
            raise OSError(f"it ended after {stream.tell()} of {size} bytes")


def _is_whole(name: str, file: Path) -> bool:
    """Return whether an archive is complete. Its type comes from its name."""
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(file) as archive:
                return archive.testzip() is None
        if name.endswith((".gz", ".tgz")):
            with gzip.open(file) as stream:
                while stream.read(BLOCK):
                    pass
                return file.stat().st_size > 0
    except _BROKEN:
        return False
    return True


def unpack(file: Path, members: Sequence[str], folder: Path) -> None:
    """Take members, named without their folders, out of an archive."""
    folder.mkdir(exist_ok=True)
    try:
        for name, content in _contents(file):
            if name in members:
                with open(folder / name, "wb") as stream:
                    shutil.copyfileobj(content, stream, BLOCK)
    except _BROKEN as error:
        problem = f"{file}: cannot be unpacked ({_reason(error)})"
        raise LabError(f"{problem}: fetch it again, or free some disk space") from error
    for member in members:
        if not (folder / member).is_file():
            raise LabError(f"{file} has no {member}: check that this is the right archive")


def _reason(error: BaseException) -> str:
    if isinstance(error, EOFError):
        return "unexpected end of file"
    if isinstance(error, gzip.BadGzipFile):
        return "not in gzip format"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _contents(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name without folders and the content of each file in an archive, to its end: then it is complete."""
    if file.name.endswith(".zip"):
        with zipfile.ZipFile(file) as zipped:
            for entry in zipped.infolist():
                if not entry.is_dir():
                    with zipped.open(entry) as content:
                        yield PurePosixPath(entry.filename).name, content
        return
    with gzip.open(file) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
        for member in archive:
            extracted = archive.extractfile(member) if member.isfile() else None
            if extracted:
                yield PurePosixPath(member.name).name, extracted
