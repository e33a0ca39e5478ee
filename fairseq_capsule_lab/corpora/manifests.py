"""Comparison of the files of a prepared folder with its manifest."""

import hashlib
import re
from pathlib import Path
from typing import Collection, Dict, Iterator, List, Tuple

from tqdm import tqdm

from fairseq_capsule.errors import one_line
from fairseq_capsule_lab.corpora.findings import Finding

NAME = "manifest.tsv"
ROWS = {
    "command": 2,
    "setting": 3,
    "version": 3,
    "part": 3,
    "source": 3,
    "file": 3,
}  # minimum number of fields
AGAIN = f"delete {NAME} and prepare again"


def warnings(folder: Path) -> Tuple[str, ...]:
    """The warnings of a preparation: training texts of which many pairs were left out."""
    path = folder / NAME
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    parts = (line.split("\t") for line in lines if line.startswith("part\t"))
    return tuple(one_line(part[3]) for part in parts if len(part) > 3)


def manifest_findings(folder: Path, expected: Collection[str], known: Collection[str]) -> Iterator[Finding]:
    """Compare the SHA-256 of each file that the manifest lists.

    A folder that was not prepared by a script needs no manifest.

    Args:
        folder: the prepared folder.
        expected: files that the manifest must list.
        known: files that already have findings; their hashes are not checked.
    """
    path = folder / NAME
    if not path.is_file():
        if (folder / "settings").is_file():
            yield Finding(NAME, None, "missing, because the preparation did not finish: run the same command again")
        return
    content = path.read_bytes()
    lines = content.decode(errors="replace").split("\n")
    if lines.pop():
        yield Finding(NAME, len(lines) + 1, f"cut short inside a line: {AGAIN}")
    listed: Dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if len(fields) < ROWS.get(fields[0], len(fields) + 1):
            yield Finding(NAME, number, f"not a line of a manifest: {AGAIN}")
        elif fields[0] == "file":
            listed[fields[1]] = fields[2]
    unlisted = sorted(set(expected) - listed.keys())
    if unlisted:
        more = f" and {len(unlisted) - 1} more files" if len(unlisted) > 1 else ""
        problem = f"does not list {unlisted[0]}{more}, so it belongs to another folder or is cut short: {AGAIN}"
        yield Finding(NAME, None, problem)
    yield from _changed(folder, listed, known)


def _changed(folder: Path, listed: Dict[str, str], known: Collection[str]) -> Iterator[Finding]:
    files: List[str] = [file for file in listed if file not in known]
    for file in tqdm(files, desc=NAME, unit=" files", delay=2, disable=None, leave=False):
        if not re.fullmatch(r"[^/]+(/[^/]+)*", file) or ".." in file.split("/") or not file.isprintable():
            yield Finding(NAME, None, f"lists {file!r}, which is not a file of this folder: {AGAIN}")
        elif not (folder / file).is_file():
            yield Finding(file, None, f"missing, but {NAME} lists it: delete what was made from it and prepare again")
        elif _sha256(folder / file) != listed[file]:
            yield Finding(
                file,
                None,
                f"not the file that {NAME} lists (SHA-256): copy it again, or delete it, {NAME} and what was made from "
                "it and prepare again",
            )


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
