"""Folders of the prepare scripts: `settings.json` says how they were made, `bin` is binarised, `raw` is raw text."""

import json
import os
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path
from typing import Dict, List, Optional, Set, Tuple, Union

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import SCRIPTS, TextPreparation, preparation_of

BINARISED = "bin"
SETTINGS = "settings.json"


def settings_of(folder: Path) -> Dict[str, str]:
    """Return the settings of a folder that a script made: its `script`, and options by name. Empty if none made it.

    Raises:
        UserError: the file is damaged.
    """
    file = folder / SETTINGS
    if not file.is_file():
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        # A training keeps its settings in a file of this name too.
        is_of_script = isinstance(settings, dict) and "script" in settings
        if is_of_script and not all(isinstance(value, str) for value in settings.values()):
            raise ValueError("a setting is no text")
    except ValueError as error:
        raise UserError(f"{file}: damaged: copy it again, or delete {folder} and make it again") from error
    return settings if is_of_script else {}


def prepared_folder(data: Union[str, Path]) -> Optional[Path]:
    """Return the OUT of a prepare script, named as such or by its `bin`, also through a link; or None."""
    data = Path(data)
    for folder in (data, data.parent, Path(os.path.abspath(data)).parent, data.resolve().parent):
        binarised = folder / BINARISED
        # First that it is its folder: other parents may have a file of another program.
        is_named = binarised.is_dir() and (folder == data or binarised.resolve() == data.resolve())
        if is_named and settings_of(folder).get("script") in SCRIPTS:
            return folder
    return None


def binarised_folder(data: Union[str, Path]) -> Path:
    """Return the folder with the dictionaries, for either a prepared folder or its `bin`. Other folders stay."""
    folder, inner = Path(data), Path(data, BINARISED)
    if not inner.is_dir():
        return folder
    is_out = settings_of(folder).get("script") in SCRIPTS  # it may have copies of both dictionaries
    return inner if is_out or not any(folder.glob("dict.*.txt")) else folder


def language_pairs(binarised: Path, split: str = "*") -> List[Tuple[str, str]]:
    """Return the languages, source and target, of the files SPLIT.SOURCE-TARGET.LANGUAGE.bin of a split, or of any.

    A language may have hyphens, such as `zh-Hans`. Pairs of which one language has no file are left out.
    """
    languages: Dict[str, Set[str]] = {}
    for file in binarised.glob(f"{split}.*-*.*.bin"):
        pair, language = file.name.split(".")[-3:-1]
        languages.setdefault(pair, set()).add(language)
    found = []
    for pair, names in languages.items():
        found += [sides for sides in permutations(names, 2) if "-".join(sides) == pair]
    return sorted(found)


def preparations(data: Union[str, Path], source: str, target: str) -> Optional[Tuple[TextPreparation, TextPreparation]]:
    """Return how the text of a source and a target language was prepared, or None if no prepare script made the data.

    Raises:
        UserError: the folder has no merges or pieces although its text has subwords.
    """
    folder = prepared_folder(data)
    return None if folder is None else (_preparation(folder, source), _preparation(folder, target))


def _preparation(folder: Path, language: str) -> TextPreparation:
    settings = settings_of(folder)
    text = preparation_of(settings, language)
    characters = settings.get("tokenise", SCRIPTS[settings["script"]].get("tokenise")) == "characters"
    if characters or settings.get("bpe") == "none":
        return text
    pieces = settings.get("bpe", "").startswith("sentencepiece")
    stem, ending = ("sentencepiece", ".model") if pieces else ("codes", "")
    for name in (f"{stem}{ending}", f"{stem}.{language}{ending}"):
        if (folder / name).is_file():
            return replace(text, subwords="sentencepiece" if pieces else "subword-nmt", codes=str(folder / name))
    raise UserError(f"{folder / stem}{ending}: missing; prepare the data again")


def raw_lines(data: Union[str, Path], split: str, language: str, count: int) -> List[str]:
    """Return the raw lines of a split with `count` sentences, or none if they are not there, or not as many.

    Raw text has training pairs that a script left out later. If the numbers are equal, it left out none.
    """
    lines = first_raw_lines(data, split, language, None)
    return lines if len(lines) == count else []


def first_raw_lines(data: Union[str, Path], split: str, language: str, most: Optional[int] = 1000) -> List[str]:
    """Return the first raw lines of a split, at most as many as `most`, or none if they are not there."""
    folder = prepared_folder(data)
    file = folder / "raw" / f"{split}.{language}" if folder else None
    if file is None or not file.is_file():
        return []
    with open(file, encoding="utf-8", newline="\n") as text:
        return [line.rstrip("\n") for line in islice(text, most)]
