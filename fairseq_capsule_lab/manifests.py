"""What a prepared folder remembers: its manifest, of the command, settings, versions, sources and files; warnings."""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairseq_capsule_lab.processes import FORKS, versions

PACKAGES = ("fairseq-capsule", *FORKS, "torch", "sacremoses", "subword-nmt", "jieba", "sentencepiece")
POSITIONS = 1024  # tokens in a sentence; fairseq's default
DIGITS = 12  # of a hash in the settings
NO_TEXTS = ("SHA256SUMS", "PARTS")  # files of the first stage that a manifest does not list
_BINARISED = re.compile(r".*/([^/]+): ([0-9]+) sents, .* (\S+%) replaced.*")


def manifest_lines(folder: Path, stages: Iterable[str], command_line: str) -> list[str]:
    """Return the lines of a manifest: the command, its settings and tools, all sources and what the stages made."""
    lines = [f"command\t{command_line}"]
    lines += ["setting\t" + line.replace(" ", "\t", 1) for line in _lines(folder / "settings")]
    lines += [f"version\t{name}\t{version}" for name, version in versions(PACKAGES).items()]
    lines += [f"part\t{line}" for line in _lines(folder / "raw/PARTS")]
    for line in _lines(folder / "raw/SHA256SUMS"):
        digest, _, name = line.partition(" ")
        lines.append(f"source\t{name[1:]}\t{digest}")
    made = [folder / stage for stage in stages]
    files = [file for path in made for file in ([path] if path.is_file() else path.rglob("*"))]
    files = [file for file in files if file.is_file() and file.suffix != ".log" and file.name not in NO_TEXTS]
    for name in sorted(str(file.relative_to(folder)) for file in files):
        file = folder / name
        number = "" if name.endswith((".bin", ".idx", ".model")) else f"\t{count_lines(file)} lines"
        lines.append(f"file\t{name}\t{sha256(file)}{number}")
    return lines


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
