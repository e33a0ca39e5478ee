"""What belongs together: a checkpoint and the words and the direction of data, of a task or of another checkpoint.

Every way in asks `refuse_other`, before anything is written, translated or trained.
"""

import hashlib
import logging
import os
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from fairseq.data import Dictionary, data_utils
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq.tasks.translation import TranslationTask
from fairseq.utils import split_paths

from capsule_routing.errors import UserError
from capsule_routing.text.folders import language_pairs, prepared_folder
from fairseq_capsule.data.dictionaries import read_dictionaries, read_dictionary

logger = logging.getLogger(__name__)

Languages = Tuple[str, str]  # source, target
DIGESTS, BINARISED = "dictionary_digests", "binarised_as"  # keys in the state of a task
SIDES = {"source": "encoder", "target": "decoder"}


@dataclass(frozen=True)
class Belonging:
    """The words and the direction of a checkpoint, of a task or of data, as far as they are known.

    Attributes:
        name: what a message calls it.
        folder: the binarised data; empty if unknown.
        languages: source and target, or None.
        digests: of the words of its dictionaries, by "source" and "target".
        sizes: the numbers of their entries.
        reverses: whether a checkpoint was trained in the other direction than that in the names of its data.
        read: the dictionaries of data for a source and a target language, as the checkpoint's task reads them; None if
            it takes those of the files.
    """

    name: str
    folder: str = ""
    languages: Optional[Languages] = None
    digests: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    reverses: bool = False
    read: Optional[Callable[[str, Languages], Mapping[str, Dictionary]]] = field(default=None, compare=False)


def of_checkpoint(name: str, state: Mapping[str, Any]) -> Belonging:
    """Return what is known of the checkpoint `state`.

    A checkpoint of fairseq's own tasks has no digests, and may have no languages. Then both are those of the folder
    that it was trained on, if it exists. A dictionary of another size there is ignored: the folder has changed.
    """
    folder, languages = trained_on(state)
    stored = state.get("task_state")
    stored = stored if isinstance(stored, dict) else {}
    sizes = {}
    for side, part in SIDES.items():
        embeddings = state["model"].get(f"{part}.embed_tokens.weight")
        if embeddings is not None:
            sizes[side] = len(embeddings)
    digests, read = stored.get(DIGESTS), _reader(state)
    if not isinstance(digests, dict):
        digests = {}
        files = [os.path.join(folder, f"dict.{language}.txt") for language in languages or ()]
        if read and languages and all(map(os.path.isfile, files)):
            formers = read(folder, languages)
        else:
            formers = {side: read_dictionary(file) for side, file in zip(SIDES, files) if os.path.isfile(file)}
        for side, former in formers.items():
            if sizes.get(side) in (None, len(former)):
                digests[side] = digest(former)
    pairs = stored.get(BINARISED)
    if not isinstance(pairs, list):
        pairs = _pairs(folder)
    own = list(languages or ())
    return Belonging(name, folder, languages, digests, sizes, own not in pairs and own[::-1] in pairs, read)


def of_task(task: FairseqTask) -> Belonging:
    """Return the words and the direction of a task of two languages, and its data."""
    dictionaries = {"source": task.source_dictionary, "target": task.target_dictionary}
    data = getattr(task.cfg, "data", None)
    folder = split_paths(data)[0] if data else ""
    languages = _both(getattr(task.cfg, "source_lang", None), getattr(task.cfg, "target_lang", None))
    return _of_dictionaries(folder or "the data", folder, languages, dictionaries)


def of_data(data: Path, checkpoint: Belonging, languages: Optional[Languages] = None) -> Belonging:
    """Return the words and the direction of binarised data that a checkpoint is to read.

    The direction is `languages` if they are given, otherwise that in the names of the files. Data of both directions
    have that of the checkpoint. So do data of the other direction if the checkpoint was trained on such data: its
    settings chose the direction. A missing or broken dictionary of a language is a UserError.
    """
    dictionaries, own, pairs = read_dictionaries(data), checkpoint.languages, language_pairs(data)
    if languages is None:
        serves = own is not None and (own in pairs or checkpoint.reverses and own[::-1] in pairs)
        languages = own if serves or not pairs else pairs[0]
    for language in own or languages or ():
        if language not in dictionaries:
            problem = f"no dict.{language}.txt, but {checkpoint.name} translates {_written(own or languages)}"
            raise UserError(f"{data}: {problem}; name the data that it was trained on")
    if checkpoint.read and languages:
        return _of_dictionaries(str(data), str(data), languages, checkpoint.read(str(data), languages))
    of_sides = dict(zip(SIDES, languages or ()))
    known = {side: dictionaries[language] for side, language in of_sides.items() if language in dictionaries}
    return _of_dictionaries(str(data), str(data), languages, known)


def refuse_other(checkpoint: Belonging, other: Belonging, languages: bool = True) -> None:
    """Raise a UserError that names both sides if a checkpoint has other words or another direction than `other`.

    What is not known of the checkpoint is not compared, and a warning says so. With `languages` False the direction is
    not compared.
    """
    if languages and checkpoint.languages and other.languages and checkpoint.languages != other.languages:
        there, here = _written(checkpoint.languages), _written(other.languages)
        remedy = f"give a checkpoint of {here}, or text of {there} (--source and --target of prepare.sh)"
        raise UserError(f"{checkpoint.name}: it translates {there}, but {other.name} is {here}; {remedy}")
    for side, part in SIDES.items():
        sizes = checkpoint.sizes.get(side), other.sizes.get(side)
        if None not in sizes and sizes[0] != sizes[1]:
            problem = f"its {part}'s dictionary has {sizes[0]} entries, but that of {other.name} has {sizes[1]}"
            raise UserError(f"{checkpoint.name}: {problem}; {_remedy(checkpoint)}")
        digests = checkpoint.digests.get(side), other.digests.get(side)
        if None not in digests and digests[0] != digests[1]:
            problem = f"it was trained with other words than those of the {side} dictionary of {other.name}"
            raise UserError(f"{checkpoint.name}: {problem}; {_remedy(checkpoint)}")
    unknown = [] if len(checkpoint.digests.keys() & other.digests.keys()) == len(SIDES) else ["words"]
    unknown += ["direction"] if languages and None in (checkpoint.languages, other.languages) else []
    if unknown:
        missing = "its digests or languages are missing, and so is the data folder of its training"
        logger.warning(f"{checkpoint.name}: {' and '.join(unknown)} not compared with those of {other.name}: {missing}")


def refuse_several_directions(checkpoints: Sequence[Belonging]) -> None:
    """Raise a UserError if models that are used together translate in different directions, as far as that is known."""
    known = [checkpoint for checkpoint in checkpoints if checkpoint.languages]
    for other in known[1:]:
        if other.languages != known[0].languages:
            directions = f"translates {_written(other.languages)}, but {known[0].name} {_written(known[0].languages)}"
            raise UserError(f"{other.name}: it {directions}; give models of one direction")


def keep_belonging(task: FairseqTask) -> None:
    """Store digests of a task's dictionaries, and the direction in the names of its data, in its state.

    fairseq saves the state of the task in each checkpoint.
    """
    known = of_task(task)
    task.load_state_dict({DIGESTS: dict(known.digests), BINARISED: _pairs(known.folder)})


def digest(dictionary: Dictionary) -> str:
    return hashlib.sha256("\n".join(dictionary.symbols).encode()).hexdigest()


def trained_on(state: Mapping[str, Any]) -> Tuple[str, Optional[Languages]]:
    """Return the data folder and the languages of a checkpoint.

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
    return folder, _both(*languages)


def _reader(state: Mapping[str, Any]) -> Optional[Callable[[str, Languages], Mapping[str, Dictionary]]]:
    """Return `Belonging.read` of a checkpoint: some tasks of fairseq add symbols to the dictionaries of the files."""
    config = state.get("cfg") or {}
    task = config.get("task") if config else state.get("args")
    options = dict(task) if isinstance(task, Mapping) else dict(vars(task or Namespace()))
    found = TASK_REGISTRY.get(options.get("_name") or options.get("task"))
    if not isinstance(found, type) or not issubclass(found, TranslationTask):
        return None
    kind: Any = found
    if kind.__init__ is TranslationTask.__init__:
        return None

    def read(folder: str, languages: Languages) -> Mapping[str, Dictionary]:
        source, target = languages
        made = kind.setup_task(Namespace(**{**options, "data": folder, "source_lang": source, "target_lang": target}))
        return {"source": made.source_dictionary, "target": made.target_dictionary}

    return read


def _of_dictionaries(
    name: str, folder: str, languages: Optional[Languages], dictionaries: Mapping[str, Dictionary]
) -> Belonging:
    digests = {side: digest(words) for side, words in dictionaries.items()}
    return Belonging(name, folder, languages, digests, {side: len(words) for side, words in dictionaries.items()})


def _pairs(folder: str) -> List[List[str]]:
    """Return the pairs of languages in the names of the files of binarised data; none of a folder that is not there."""
    return [list(pair) for pair in language_pairs(Path(folder))] if folder else []


def _both(source: Optional[str], target: Optional[str]) -> Optional[Languages]:
    return (source, target) if source is not None and target is not None else None


def _written(languages: Optional[Languages]) -> str:
    return "-".join(languages or ())


def _remedy(checkpoint: Belonging) -> str:
    """Return how text becomes data of the checkpoint's words."""
    folder = checkpoint.folder and (prepared_folder(checkpoint.folder) or checkpoint.folder)
    return f"prepare the text with --codes and --dict of {folder or 'the folder that it was trained on'}"
