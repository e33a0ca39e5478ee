"""Pack the results of finished runs into a small archive (.tar.xz), and unpack it.

An archive has the settings, scores, measurements, translations and learning curves of each run. It has no checkpoints
and no text of the corpus. `fairseq-capsule table` reads the unpacked folder as it is. `fairseq-capsule report` also
needs the sentences that were translated: `unpack --data` adds them.

`unpack` accepts regular files with a plain relative name that `pack` would write, up to a size. It overwrites nothing
and follows no link. It checks the whole archive before it writes the first file.
"""

import contextlib
import io
import json
import lzma
import os
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from capsule_routing.errors import UserError
from capsule_routing.text.files import regular_file
from fairseq_capsule_lab.errors import LabError, shown
from fairseq_capsule_lab.files import replace_file, replacing
from fairseq_capsule_lab.runs.folder import RunFolder
from fairseq_capsule_lab.runs.settings import Settings

KEPT = (
    *("settings.json", "manifest.json", "finished", "train.log", "measures/*.json", "compared/*/*.json"),
    *("evaluation/*/scores.json", "evaluation/*/settings", "evaluation/*/generate.out"),
)
OF_SEVERAL_SEEDS = "seeds*/compared/*/*.json"
MOST_MIB = 256  # of an archive after decompression; it is held in memory
MOST_MIB_OF_FILE = 32
MOST_FILES = 20_000
LONGEST_NAME = 1000
# What tarfile raises for a damaged header.
DAMAGED = (EOFError, lzma.LZMAError, tarfile.TarError, ValueError, KeyError, IndexError, OverflowError, RecursionError)
# What is kept of each start in a manifest.
START = ("start", "versions", "git", "processor", "gpus", "processes", "batch", "seed", "end")
CURVES = re.compile(r"(?:\]\[(?:train|valid)\]\[INFO\]|\| INFO \| (?:train|valid) \|)|num\. shared model params: ")
HYPOTHESIS = re.compile(r"^H-(\d+)\t([^\t\n]*\t.*)", re.MULTILINE)


def pack(runs: Path, archive: Path) -> None:
    """Write an archive of all finished runs in a folder: the same bytes for the same results."""
    if archive.exists() and not archive.is_file():  # it would be replaced by a file
        raise LabError(f"{archive}: not a file; name an archive to write")
    _remove_parts(archive)
    runs = runs.resolve()
    folders = sorted(path.parent for path in runs.rglob("finished"))
    if not folders:
        raise LabError(f"{runs}: no finished runs")
    with replacing(archive) as stream, tarfile.open(fileobj=stream, mode="w:xz", preset=9) as tar:
        # The same file of all runs in sequence: their translations are similar, so they take less space.
        groups = [[file for folder in folders for file in folder.glob(pattern)] for pattern in KEPT]
        groups += [[file for system in {folder.parent for folder in folders} for file in system.glob(OF_SEVERAL_SEEDS)]]
        for file in (file for files in groups for file in sorted(files)):
            if file.resolve() != file or not file.is_file():
                raise LabError(f"{file}: a link or a pipe, not a file; delete it, or pack another folder")
            content = _reduce(file, runs).encode()
            member = tarfile.TarInfo(str(file.relative_to(runs)))
            member.size = len(content)
            _require_result(runs, member)
            tar.addfile(member, io.BytesIO(content))
            if tar.offset > MOST_MIB << 20:
                raise LabError(f"{runs}: results of over {MOST_MIB} MiB; pack fewer runs")
    print(f"{archive}: {len(folders)} runs, {archive.stat().st_size:,} bytes")


def _remove_parts(archive: Path) -> None:
    """Remove what killed processes left of the archive (`files.replacing`)."""
    for part in archive.parent.glob(f".{archive.name}.*.part"):
        process = part.name.removeprefix(f".{archive.name}.").partition("-")[0]
        if process.isdecimal() and not Path(f"/proc/{process}").exists() and os.path.isdir("/proc"):
            part.unlink(missing_ok=True)


def _require_result(place: Path, member: tarfile.TarInfo) -> None:
    """Refuse what is not a result. `pack` and `unpack` have the same rule."""
    name, parts = member.name, member.name.split("/")
    if member.type != tarfile.REGTYPE or member.sparse is not None:
        fault = "no regular file"
    elif len(name) > LONGEST_NAME or not all(part and part[0] != "." and part.isprintable() for part in parts):
        fault = "no plain relative name"
    elif not any(PurePosixPath(name).match(pattern) for pattern in (*KEPT, OF_SEVERAL_SEEDS)):
        fault = "no file of results"
    elif not 0 <= member.size <= MOST_MIB_OF_FILE << 20:
        fault = f"over {MOST_MIB_OF_FILE} MiB"
    else:
        return
    raise LabError(f"{place}: {shown(name)}: {fault}; only results of runs can be shared")


def _reduce(file: Path, runs: Path) -> str:
    """Return the content of a file that is kept."""
    text = _text(file)
    if file.name == "manifest.json":
        starts = RunFolder(file.parent).manifest()["starts"]
        text = json.dumps({"starts": [{key: start[key] for key in START if key in start} for start in starts]})
    if file.name == "generate.out":
        return "".join(f"{line[0]}\n" for line in HYPOTHESIS.finditer(text))
    if file.name == "train.log":
        return "".join(f"{line}\n" for line in text.split("\n") if CURVES.search(line))
    if file.suffix != ".json":
        return text
    try:
        return json.dumps(_without_places(json.loads(text), runs), indent=1) + "\n"
    except ValueError as error:
        raise LabError(f"{file}: not JSON; delete it and run its command again") from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LabError(f"{file}: not UTF-8; restore the file, or delete it and run its command again") from error


def _without_places(value: Any, runs: Path) -> Any:
    """Replace absolute paths: inside the folder of runs by the path from there, elsewhere by the file's name."""
    if isinstance(value, dict):
        return {key: _without_places(part, runs) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_places(part, runs) for part in value]
    if isinstance(value, str) and value.startswith("/"):
        path = Path(value)
        return str(path.relative_to(runs)) if path.is_relative_to(runs) else path.name
    return value


def unpack(archive: Path, runs: Path, data: Path | None) -> None:
    """Write the files of an archive to a folder of runs. Sentences of the prepared `data` go to the translations."""
    runs = runs.resolve()
    files = _read(archive)
    _require_free(runs, files)
    if data:
        _require_data(data, files)
    for name, content in files.items():
        path = runs / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)
        # Only what `pack` wrote lacks the sentences. The file of the run itself has them.
        if data and path.name == "generate.out" and path.read_bytes() == content:
            folder = path.parents[2]
            if data.resolve().name in folder.relative_to(runs).parts:
                _add_text(path, path.parent.name, RunFolder(folder).settings(), data)


def _read(archive: Path) -> dict[str, bytes]:
    """Return {name: content}, or refuse the archive."""
    try:
        # Not lzma.open: it takes several streams for one, and ignores what follows the last.
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        with open(regular_file(archive), "rb") as packed:
            content = decompressor.decompress(packed.read(MOST_MIB << 20), (MOST_MIB << 20) + 1)
            rest = decompressor.unused_data or packed.read(1)
        if len(content) > MOST_MIB << 20:
            raise LabError(f"{archive}: over {MOST_MIB} MiB after decompression; no archive of results is so large")
        if rest or not decompressor.eof:
            raise lzma.LZMAError("cut short, or bytes after its end")
        files: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for number, member in enumerate(tar):
                _require_result(archive, member)
                if number == MOST_FILES:
                    raise LabError(f"{archive}: over {MOST_FILES} files; no archive of results has so many")
                if member.name in files:
                    raise LabError(f"{archive}: {shown(member.name)}: is in it twice; only results can be shared")
                stream = tar.extractfile(member)
                assert stream is not None  # it is a regular file
                files[member.name] = stream.read()
            # tarfile takes a damaged header after the first for the end, which is two blocks of zeros.
            if len(content) < tar.offset + 2 * tarfile.BLOCKSIZE or content[tar.offset :].strip(b"\0"):
                raise tarfile.ReadError("no end")
    except DAMAGED as error:
        raise LabError(f"{archive}: damaged or cut short; download it again") from error
    if not files:
        raise LabError(f"{archive}: no files in it; name an archive that `pack` wrote")
    return files


def _require_data(data: Path, files: Mapping[str, bytes]) -> None:
    """Refuse a folder that is not the prepared data of a run in the archive."""
    if not (data / "bin").is_dir():
        raise LabError(f"{data}/bin: no such folder; name prepared data, such as data/multi30k")
    folders = [PurePosixPath(name).parents[2] for name in files if PurePosixPath(name).name == "generate.out"]
    if not any(data.resolve().name in folder.parts for folder in folders):
        systems = (folder.parent if folder.name.startswith("seed") else folder for folder in folders)
        corpora = ", ".join(sorted({system.parent.name for system in systems} - {""}))
        problem = f"the archive has no translations of this corpus; it has: {corpora or 'none'}"
        raise LabError(f"{data}: {problem}; name its data")


def _require_free(runs: Path, files: Mapping[str, bytes]) -> None:
    """Refuse files whose place is taken."""
    for part in {part for name in files for part in PurePosixPath(name).parents}:
        folder = runs / part
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()) or str(part) in files:
            raise LabError(f"{folder}: a file or a link, where the archive has a folder; unpack to another folder")
    for name, content in files.items():
        path = runs / name
        if path.is_symlink() or (path.exists() and content not in _contents(path, runs)):
            raise LabError(f"{path}: exists with another content; unpack to another folder")


def _contents(path: Path, runs: Path) -> list[bytes]:
    """Return the content of a file, itself and as `pack` reduces it."""
    if not path.is_file():
        return []
    with contextlib.suppress(UserError):
        return [path.read_bytes(), _reduce(path, runs).encode()]
    return [path.read_bytes()]


def _add_text(file: Path, split: str, settings: Settings, data: Path) -> None:
    """Add the lines S- and T- of fairseq-generate to translations."""
    # It takes seconds, and `pack` does not need it.
    from fairseq_capsule.data.dictionaries import read_dictionary

    hypotheses = HYPOTHESIS.findall(_text(file))
    sentences = len({number for number, _ in hypotheses})  # with --nbest, a sentence has several lines
    lines = [f"H-{number}\t{text}" for number, text in hypotheses]
    for kind, side in (("S", "source"), ("T", "target")):
        language = settings.name(f"task.{side}_lang", "")
        dictionary = read_dictionary(f"{data}/bin/dict.{language}.txt")
        sources = _text(data / "bpe" / f"{split}.{language}").rstrip("\n").split("\n")
        if len(sources) != sentences:
            problem = f"but {data}/bpe/{split}.{language} has {len(sources)} lines"
            remedy = "name the data that the runs were evaluated on"
            raise LabError(f"{file}: translations of {sentences} sentences, {problem}; {remedy}")
        for number, line in enumerate(sources):
            words = dictionary.encode_line(line, add_if_not_exist=False, append_eos=False)
            lines.append(f"{kind}-{number}\t{dictionary.string(words, escape_unk=kind == 'T')}")
    replace_file(file, "".join(f"{line}\n" for line in lines).encode())
