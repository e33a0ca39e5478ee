"""Archives of corpora: in the user's folder or downloaded, checked, and with named members taken out."""

import gzip
import hashlib
import os
import shutil
import subprocess
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora.parallel import progress_bar

CHECKSUMS = Path(__file__).with_name("archives.md5")
TIMEOUT = 30  # seconds without a byte
BLOCK = 1 << 20
GZIP = b"\x1f\x8b"  # the first bytes; some archives are plain
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile)


def mirror() -> str:
    """Return the address to download from instead of the archives' own."""
    return os.environ.get("MIRROR", "")


def local_archive(address: str, folder: Path | None, downloads: Path) -> Path:
    """Return the path of an archive with the right checksum: in the folder of --from, or without one downloaded."""
    name = address.rpartition("/")[2]
    file = (folder or downloads) / name
    if not folder and not file.exists():
        downloads.mkdir(exist_ok=True)
        _download(f"{mirror()}/{name}" if mirror() else address, file)
    if not file.is_file():
        raise UserError(f"{file} is missing: --from takes a folder with all archives (see --help)")
    # MD5 of archives by their addresses without `https://`. Tests name another list.
    lines = Path(os.environ.get("CAPSULE_CHECKSUMS") or CHECKSUMS).read_text().splitlines()
    checksums = {address: digest for digest, address in map(str.split, lines)}
    expected = checksums.get(address.partition("://")[2])
    if expected:
        with open(file, "rb") as stream:
            actual = hashlib.file_digest(stream, "md5").hexdigest()
        if actual != expected:
            problem = f"wrong checksum, MD5 {actual} instead of {expected}"
            raise UserError(f"{file}: {problem}: delete it and fetch it again")
    return file


def _download(address: str, file: Path) -> None:
    unfinished = file.with_name(f"{file.name}.part")
    request = urllib.request.Request(address, headers={"User-Agent": "fairseq-capsule"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, open(unfinished, "wb") as stream:
            size = int(answer.headers.get("Content-Length") or 0)
            with progress_bar(None, desc=address, total=size or None, unit="B", unit_scale=True) as bar:
                while block := answer.read(BLOCK):
                    stream.write(block)
                    bar.update(len(block))
            if stream.tell() < size:
                raise OSError(f"it ended after {stream.tell()} of {size} bytes")
    except (OSError, ValueError) as error:  # ValueError: not an address
        remedy = "run the same command again, name another MIRROR=URL, or a folder that has the files by --from"
        raise UserError(f"cannot download {address} ({error}): {remedy}") from error
    unfinished.rename(file)


def unpack(files: Sequence[Path], members: Sequence[str], folder: Path) -> None:
    """Take members, named without their folders, out of an archive, which may consist of several files."""
    named = ", ".join(map(str, files))
    folder.mkdir(exist_ok=True)
    try:
        for name, content in _contents(files):
            if name in members:
                with open(folder / name, "wb") as stream:
                    shutil.copyfileobj(content, stream, BLOCK)
    except BROKEN as error:
        raise UserError(f"{named}: cannot be unpacked ({error}): delete it and fetch it again") from error
    for member in members:
        if not (folder / member).is_file():
            raise UserError(f"{named} has no {member}: check that this is the right archive")


def _contents(files: Sequence[Path]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name without folders and the content of each file in an archive, to its end: then it is complete."""
    if files[0].name.endswith(".zip"):
        with zipfile.ZipFile(files[0]) as zipped:
            for entry in zipped.infolist():
                if not entry.is_dir():
                    with zipped.open(entry) as content:
                        yield PurePosixPath(entry.filename).name, content
        return
    with subprocess.Popen(["cat", *files], stdout=subprocess.PIPE) as joined:
        assert isinstance(joined.stdout, BufferedReader)
        packed = gzip.open(joined.stdout) if joined.stdout.peek(2)[:2] == GZIP else joined.stdout
        with tarfile.open(fileobj=packed, mode="r|") as archive:
            for member in archive:
                extracted = archive.extractfile(member) if member.isfile() else None
                if extracted:
                    yield PurePosixPath(member.name).name, extracted
