"""Write parallel text: one file per split and language, one sentence per line."""

import contextlib
import os
from pathlib import Path
from typing import Dict, Mapping, Sequence, Tuple

from fairseq_capsule_lab.errors import LabError


def write_parallel(folder: Path, languages: Sequence[str], splits: Mapping[str, Sequence[Tuple[str, ...]]]) -> None:
    """Write the files `SPLIT.LANGUAGE` in UTF-8.

    The files get their names after all are complete, so files of an older corpus are never mixed with new ones.

    Raises:
        LabError: the folder cannot be created, or a file cannot be written.
    """
    _make_folder(folder)
    written: Dict[Path, Path] = {}  # temporary name -> name
    try:
        for split, sentences in splits.items():
            for language, lines in zip(languages, zip(*sentences)):
                name = folder / f"{split}.{language}"
                part = folder / f".{name.name}.{os.getpid()}.part"
                written[part] = name
                _write(part, lines)
        for part, name in written.items():
            os.replace(part, name)
    except OSError as error:
        name = written.get(Path(error.filename or part), name)
        raise LabError(f"{name}: not written: {error.strerror}; choose another folder") from error
    finally:
        for part in written:
            with contextlib.suppress(OSError):  # missing: it was renamed or never created
                part.unlink()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise LabError(f"{folder}: not a folder; name a folder, or a new name") from None
    except OSError as error:
        raise LabError(f"{folder}: cannot be created: {error.strerror}; name another folder") from error


def _write(path: Path, lines: Sequence[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(line + "\n" for line in lines)
        stream.flush()
        os.fsync(stream.fileno())  # the final name must not reach the disk before the content
