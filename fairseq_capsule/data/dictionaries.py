"""Reading of the dictionaries of binarised data, and their comparison with those of a checkpoint."""

import codecs
import hashlib
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from fairseq.data import Dictionary, data_utils
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines

REMEDY = "copy the dictionary again from the run that made it"
BINARISE = "binarise the data with the checkpoint's dictionary"
DIGESTS = "dictionary_digests"  # key in the state of a task


class TextDictionary(Dictionary):
    """fairseq's dictionary, in which `<s>`, `<pad>`, `</s>` and `<unk>` as words of a text are unknown words.

    With fairseq's own, a word `<pad>` is padding to the model.
    """

    def encode_line(
        self, line: str, line_tokenizer: Callable[[str], List[str]] = tokenize_line, *args: Any, **options: Any
    ) -> Tensor:
        """Return the numbers of the words of a line, as fairseq does."""
        own = self.symbols[: self.nspecial]

        def words(text: str) -> List[str]:
            return [self.unk_word if word in own else word for word in line_tokenizer(text)]

        return super().encode_line(line, words, *args, **options)


def read_dictionary(path: Union[str, Path]) -> Dictionary:
    """Read a dictionary of fairseq-preprocess.

    A UserError says if it is missing, empty, not in UTF-8, or not in fairseq's format, or has a symbol twice.
    """
    try:
        read_lines(path)
        if Path(path).read_bytes().startswith(codecs.BOM_UTF8):  # fairseq would add it to the first symbol
            raise UserError(f"{path}, line 1: a byte order mark before the first symbol; {REMEDY}")
        dictionary = TextDictionary.load(str(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; name a folder that fairseq-preprocess made") from error
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path}: {error}; {REMEDY}") from error
    if len(set(dictionary.symbols)) < len(dictionary):  # fairseq allows it by a flag, which fairseq-preprocess drops
        raise UserError(f"{path}: a symbol occurs twice; name a dictionary without #fairseq:overwrite")
    return dictionary


def read_dictionaries(folder: Path) -> Dict[str, Dictionary]:
    """Read the dictionaries of a folder, by language. Raises a UserError if there is none, or one is broken."""
    files = sorted(folder.glob("dict.*.txt"))
    if not files:
        raise UserError(f"{folder}: no dict.*.txt; name a folder that fairseq-preprocess made")
    return {file.name[len("dict.") : -len(".txt")]: read_dictionary(file) for file in files}


def refuse_other_dictionaries(label: str, state: Dict[str, Any], source: Dictionary, target: Dictionary) -> None:
    """Raise a UserError if a checkpoint was trained with other dictionaries than those of the data.

    Checkpoints contain no dictionary, and older ones no digest of it. The sizes are always compared. The words are
    compared by the digest, and with the dictionary in the folder that the checkpoint was trained on, if that folder
    exists. A dictionary of another size there is ignored, because the folder has changed since the training. `label`
    names the checkpoint in an error.
    """
    folder, languages = trained_on(state)
    for side, dictionary in (("encoder", source), ("decoder", target)):
        embeddings = state["model"].get(f"{side}.embed_tokens.weight")
        if embeddings is None:
            continue
        if len(embeddings) != len(dictionary):
            sizes = f"has {len(embeddings)} entries, but the data's has {len(dictionary)}"
            raise UserError(f"{label}: its {side}'s dictionary {sizes}; {BINARISE}")
    _refuse_other_digests(f"{label}: it", state.get("task_state"), source, target)
    for dictionary, language in zip((source, target), languages):
        file = os.path.join(folder, f"dict.{language}.txt")
        former = read_dictionary(file) if os.path.isfile(file) else dictionary
        if len(former) == len(dictionary) and former.symbols != dictionary.symbols:
            problem = f"it was trained with the words of {file}, which differ from those of the data"
            raise UserError(f"{label}: {problem}; {BINARISE}")


def require_dictionaries(label: str, state: Dict[str, Any], data: Path) -> None:
    """Raise a UserError if data lacks a dictionary of a checkpoint's languages, or has other or broken ones."""
    dictionaries = read_dictionaries(data)
    _, languages = trained_on(state)
    if None in languages:
        languages = tuple(data_utils.infer_language_pair(str(data)))
    known = [language for language in languages if language is not None]
    for language in known:
        if language not in dictionaries:
            problem = f"no dict.{language}.txt, but {label} translates {'-'.join(map(str, languages))}"
            raise UserError(f"{data}: {problem}; name the data that it was trained on")
    if len(known) == 2:
        refuse_other_dictionaries(label, state, *(dictionaries[language] for language in known))


def keep_digests(task: FairseqTask) -> None:
    """Add digests of a task's dictionaries to its state, and refuse a checkpoint with other digests.

    fairseq saves the state of the task in each checkpoint, and restores it before it builds the model of a checkpoint.
    Therefore a model calls this function when it is built. Other digests raise a UserError.
    """
    _refuse_other_digests("the checkpoint", task.state_dict(), task.source_dictionary, task.target_dictionary)
    task.load_state_dict({DIGESTS: _digests(task.source_dictionary, task.target_dictionary)})


def _digests(source: Dictionary, target: Dictionary) -> Dict[str, str]:
    sides = {"source": source, "target": target}
    return {side: hashlib.sha256("\n".join(words.symbols).encode()).hexdigest() for side, words in sides.items()}


def _refuse_other_digests(what: str, task_state: Any, source: Dictionary, target: Dictionary) -> None:
    former = task_state.get(DIGESTS) if isinstance(task_state, dict) else None
    if not isinstance(former, dict):  # a checkpoint of version 0.1 or of fairseq's models
        return
    for side, digest in _digests(source, target).items():
        if former.get(side, digest) != digest:
            problem = f"was trained with other words than those of the data's {side} dictionary"
            raise UserError(f"{what} {problem}; {BINARISE}")


def refuse_other_languages(label: str, state: Dict[str, Any], source: str, target: str) -> None:
    """Raise a UserError if a checkpoint's languages are known and differ from the languages of the data."""
    _, languages = trained_on(state)
    if None not in languages and languages != (source, target):
        raise UserError(f"{label}: it translates {languages[0]}-{languages[1]}, but the data are {source}-{target}")


def trained_on(state: Dict[str, Any]) -> Tuple[str, Tuple[Optional[str], Optional[str]]]:
    """Return the data folder and the (source, target) languages of a checkpoint.

    Languages that the options do not name are those that fairseq infers from the data folder, if it exists. Otherwise
    they are None.
    """
    config = state.get("cfg") or {}
    task = config.get("task") if config else state.get("args")
    names = ("data", "source_lang", "target_lang")
    data, *languages = (task.get(name) if isinstance(task, dict) else getattr(task, name, None) for name in names)
    folder = str(data or "").split(os.pathsep)[0]
    if None in languages and os.path.isdir(folder):
        languages = data_utils.infer_language_pair(folder)
    return folder, (languages[0], languages[1])
