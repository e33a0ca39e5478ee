"""What a prepared folder remembers: `settings.json`, the options that made it, and `manifest.json`, described here.

The manifest has the command, the versions of packages, the sources, what was taken of each training text, and the
files.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from capsule_routing.text.folders import SETTINGS
from fairseq_capsule_lab.processes import FORKS, versions

PACKAGES = ("fairseq-capsule", *FORKS, "torch", "sacremoses", "subword-nmt", "jieba", "sentencepiece")
MANIFEST = "manifest.json"
POSITIONS = 1024  # tokens in a sentence; fairseq's default
DIGITS = 12  # of a hash in the settings
NO_TEXTS = ("SHA256SUMS", "PARTS")  # files of the first stage that a manifest does not list
_BINARISED = re.compile(r".*/([^/]+): ([0-9]+) sents, .* (\S+%) replaced.*")


def manifest_of(folder: Path, stages: Iterable[str], command_line: str) -> dict[str, Any]:
    """Return the manifest of a folder whose `stages` are finished."""
    sources = (line.partition("  ") for line in _lines(folder / "raw/SHA256SUMS"))
    texts = (line.split("\t") for line in _lines(folder / "raw/PARTS"))
    made = [folder / SETTINGS, *(folder / stage for stage in stages)]
    files = [file for path in made for file in ([path] if path.is_file() else path.rglob("*"))]
    files = [file for file in files if file.is_file() and file.suffix != ".log" and file.name not in NO_TEXTS]
    return {
        "command": command_line,
        "versions": versions(PACKAGES),
        "sources": [{"name": name, "sha256": digest} for digest, _, name in sources],
        "texts": [dict(zip(("name", "taken", "warning"), fields)) for fields in texts],
        "files": {str(file.relative_to(folder)): _facts(file) for file in sorted(files)},
    }


def _facts(file: Path) -> dict[str, Any]:
    """Return the hash of a file, and of a text the number of lines."""
    is_text = file.suffix not in (".bin", ".idx", ".model")
    return {"sha256": sha256(file), **({"lines": count_lines(file)} if is_text else {})}


def sha256(*contents: Path | bytes) -> str:
    """Return the SHA-256 of files and texts, one after the other, in hex digits."""
    digest = hashlib.sha256()
    for content in contents:
        with open(content, "rb") if isinstance(content, Path) else io.BytesIO(content) as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def fingerprint(*contents: Path | bytes) -> str:
    return sha256(*contents)[:DIGITS]


def counts(path: Path) -> str:
    """Return the number of lines of a stage's texts, and what was taken from each part of the training text."""
    if path.suffix == ".model":
        return f"{path.stat().st_size} bytes"
    if path.is_file():
        return f"{count_lines(path)} lines"
    binarised = path / "preprocess.log"
    if binarised.is_file():
        said = (_BINARISED.fullmatch(line) for line in _lines(binarised))
        return ", ".join(f"{line[1]} {line[2]} ({line[3]} <unk>)" for line in said if line)
    texts = sorted(file for file in path.iterdir() if "." in file.name[1:] and not file.name.startswith("."))
    taken = (": ".join(line.split("\t")[:2]) for line in _lines(path / "PARTS"))  # without a warning
    numbers = ", ".join(f"{file.name} {count_lines(file)}" for file in texts)
    return "\n".join([numbers, *(f"  {line}" for line in taken)])


def warnings(folder: Path, texts: str) -> Iterator[str]:
    """Yield what a user should know: the parts of the training text of which much was left out, and long sentences.

    The latter are the first of each held-out text, in the folder `texts`, that is longer than the positions of most
    models.
    """
    for line in _lines(folder / "raw/PARTS"):
        yield from line.split("\t")[2:]
    for file in sorted((folder / texts).glob("*.*")):
        if file.name.startswith(("valid", "test")):
            with open(file, "rb") as text:
                lengths = (len(line.decode().split()) for line in text)
                number = next((number for number, length in enumerate(lengths, 1) if length > POSITIONS), None)
            if number:
                problem = f"over {POSITIONS:,} tokens, more than most models have positions"
                yield f"{file}, line {number}: {problem}: leave it out, or give the model more of them"


def count_lines(path: Path) -> int:
    with open(path, "rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="surrogateescape").splitlines() if file.is_file() else []
