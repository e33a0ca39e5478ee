"""The dictionaries of binarised data: how they are read, and whether a checkpoint was trained with the same words."""

import os
import re
from pathlib import Path
from typing import Any, Dict, Optional, Tuple, Union

from fairseq.data import Dictionary, data_utils

from fairseq_capsule.data.files import read_lines
from fairseq_capsule.errors import UserError

ENTRY = re.compile(r"(?P<symbol>[^\r]+) \d{1,18}(?P<overwrite> #fairseq:overwrite)?\s*", re.ASCII)
REMEDY = "copy the dictionary again from the run that made it"


def read_dictionary(path: Union[str, Path]) -> Dictionary:
    """A dictionary of fairseq-preprocess.

    Raises:
        UserError: not UTF-8, empty, a line that is not `SYMBOL COUNT`, or a symbol that stands there twice.
        OSError: it cannot be read.
    """
    seen = dict.fromkeys(Dictionary().symbols, 0)
    for number, line in enumerate(read_lines(path), start=1):
        entry = ENTRY.fullmatch(line)
        if not entry:
            raise UserError(f"{path}, line {number}: {line[:40]!r} is not 'SYMBOL COUNT'; {REMEDY}")
        symbol = entry["symbol"]
        if symbol in seen and not entry["overwrite"]:
            first = f"in line {seen[symbol]} already" if seen[symbol] else "one of fairseq's own symbols"
            raise UserError(f"{path}, line {number}: {symbol!r} is {first}; {REMEDY}")
        seen[symbol] = number
    return Dictionary.load(str(path))


def read_dictionaries(folder: Path) -> Dict[str, Dictionary]:
    """Language → dictionary of a folder that fairseq-preprocess made.

    Raises:
        UserError: there is none, or one is broken.
    """
    files = sorted(folder.glob("dict.*.txt"))
    if not files:
        raise UserError(f"{folder}: no dict.*.txt in it; name a folder that fairseq-preprocess made")
    return {file.name[len("dict.") : -len(".txt")]: read_dictionary(file) for file in files}


def refuse_other_dictionaries(label: str, state: Dict[str, Any], source: Dictionary, target: Dictionary) -> None:
    """Refuse a checkpoint that was trained with other dictionaries.

    Checkpoints hold no dictionary: sizes are always compared, words where the folder that the checkpoint was trained on
    is there with a dictionary of that size; with another one it is another folder by now.

    Args:
        label: what the checkpoint is called in an error.
        state: the loaded checkpoint.
        source, target: the data's dictionaries.

    Raises:
        UserError: they differ.
    """
    folder, languages = trained_on(state)
    for side, dictionary, language in zip(("encoder", "decoder"), (source, target), languages):
        embeddings = state["model"].get(f"{side}.embed_tokens.weight")
        if embeddings is not None and len(embeddings) != len(dictionary):
            raise UserError(
                f"{label}: its {side}'s dictionary has {len(embeddings)} entries, the data's {len(dictionary)}; "
                "binarise the data with the checkpoint's dictionary"
            )
        file = os.path.join(folder, f"dict.{language}.txt")
        there = read_dictionary(file) if os.path.isfile(file) else dictionary
        if len(there) == len(dictionary) and there.symbols != dictionary.symbols:
            raise UserError(
                f"{label}: the words of {file}, which it was trained with, are not the data's; "
                "binarise the data with the checkpoint's dictionary"
            )


def refuse_other_languages(label: str, state: Dict[str, Any], source: str, target: str) -> None:
    """Refuse a checkpoint that translates from or into another language than the data's, where that can be known.

    Raises:
        UserError: it does.
    """
    _, languages = trained_on(state)
    if None not in languages and languages != (source, target):
        raise UserError(f"{label}: it translates {languages[0]}-{languages[1]}, the data are {source}-{target}")


def trained_on(state: Dict[str, Any]) -> Tuple[str, Tuple[Optional[str], Optional[str]]]:
    """The folder of a checkpoint's data and their languages: as its options say, or the folder where it is there."""
    config = state.get("cfg") or {}
    task = config.get("task") if config else state.get("args")
    option = task.get if isinstance(task, dict) else lambda name: getattr(task, name, None)
    folder = str(option("data") or "").split(os.pathsep)[0]
    languages = option("source_lang"), option("target_lang")
    if None in languages and os.path.isdir(folder):
        languages = tuple(data_utils.infer_language_pair(folder))
    return folder, languages
