"""A trained model with data to try it on."""

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple, Union

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import data_utils
from fairseq.dataclass.utils import overwrite_args_by_name
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm

from fairseq_capsule.data.binarised import require_whole
from fairseq_capsule.data.dictionaries import read_dictionaries, refuse_other_dictionaries, trained_on
from fairseq_capsule.errors import UserError

Loaded = Tuple[torch.nn.Module, Union[DictConfig, Namespace], FairseqTask]

# What fairseq and torch raise when the options of a checkpoint build no model, or one for other parameters.
BUILDING_ERRORS = (
    AssertionError,
    AttributeError,
    LookupError,
    OmegaConfBaseException,
    RuntimeError,
    TypeError,
    ValueError,
)


def load_model(checkpoint: Path, data: Path, overrides: Optional[Dict[str, Any]] = None) -> Loaded:
    """A checkpoint's model, its config, and its task on binarised data.

    Args:
        overrides: options of the checkpoint to be set otherwise, as in fairseq's `--model-overrides`.

    Raises:
        UserError: a broken checkpoint, broken dictionaries, those of another run, or options that the checkpoint's
            weights do not allow.
        OSError: a path that is not there.
    """
    if os.pathsep in str(data):
        raise UserError(f"{data}: fairseq would read it as several folders, for the {os.pathsep!r} in it; rename it")
    options = {"data": str(data), **(overrides or {})}
    state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
    config = _require_parts(checkpoint, state)
    _require_dictionaries(checkpoint, state, data)
    if isinstance(config, Namespace):
        vars(config).update(options)
    else:
        overwrite_args_by_name(config, options)
    try:
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], state=state)
    except BUILDING_ERRORS as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"{checkpoint}: its options and its parameters make no model ({type(error).__name__}: {reason}); copy the "
            "file again, or train again"
        ) from error
    return models[0].eval(), cfg, task


def load_with_data(checkpoint: Path, data: Path, overrides: Optional[Dict[str, Any]] = None) -> Loaded:
    """As `load_model`, the model being on a GPU where there is one."""
    model, cfg, task = load_model(checkpoint, data, overrides)
    return model.cuda() if torch.cuda.is_available() else model, cfg, task


def load_split(task: FairseqTask, split: str) -> None:
    """Let a task of two languages load a split of its data.

    Raises:
        UserError: no such split, or a file of it that is not whole or not of the dictionaries beside it.
    """
    folder = Path(utils.split_paths(task.cfg.data)[0])
    dictionaries = {task.cfg.source_lang: task.source_dictionary, task.cfg.target_lang: task.target_dictionary}
    for language, text in require_whole(folder, split).items():
        if language in dictionaries:
            text.require_known_tokens(len(dictionaries[language]))
    try:
        task.load_dataset(split)
    except FileNotFoundError as error:
        raise UserError(f"--split {split}: {error}") from error


def batches(task: FairseqTask, split: str, description: str) -> Iterator[Dict[str, Any]]:
    """All batches of a split, where the model is, with a progress bar.

    Raises:
        UserError: as `load_split`.
    """
    load_split(task, split)
    found = task.get_batch_iterator(task.dataset(split), max_tokens=8000, max_sentences=200)
    for sample in tqdm(found.next_epoch_itr(shuffle=False), desc=description, disable=None, leave=False):
        yield utils.move_to_cuda(sample) if torch.cuda.is_available() else sample


def _require_parts(checkpoint: Path, state: Mapping) -> Union[DictConfig, Namespace]:
    """The options of a checkpoint that has a model's parameters, an architecture and a task, both known."""
    parameters = state.get("model")
    if not isinstance(parameters, Mapping) or not parameters:
        raise UserError(f"{checkpoint}: no parameters of a model in it; name a checkpoint that a training wrote")
    config = state.get("args") or state.get("cfg")
    if isinstance(config, Namespace):
        names = getattr(config, "arch", None), getattr(config, "task", None)
    elif isinstance(config, DictConfig):
        names = _name(config.get("model")), _name(config.get("task"))
    else:
        raise UserError(f"{checkpoint}: no options of a model in it; name a checkpoint that a training wrote")
    known = (("architecture", {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}), ("task", TASK_REGISTRY))
    for name, (what, registry) in zip(names, known):
        if not isinstance(name, str) or name not in registry:
            there = f"its {what} {name!r} is not known" if name else f"no {what} in its options"
            raise UserError(f"{checkpoint}: {there}; name a checkpoint of fairseq's or of this package")
    return config


def _name(part: Any) -> Any:
    return part.get("_name") if isinstance(part, Mapping) else getattr(part, "_name", None)


def _require_dictionaries(checkpoint: Path, state: Mapping, data: Path) -> None:
    """Refuse data without the dictionaries of a checkpoint's languages, or with other words than it was trained on."""
    dictionaries = read_dictionaries(data)
    _, languages = trained_on(state)
    if None in languages:
        languages = tuple(data_utils.infer_language_pair(str(data)))
    for language in filter(None, languages):
        if language not in dictionaries:
            raise UserError(
                f"{data}: no dict.{language}.txt in it, and {checkpoint} translates {'-'.join(map(str, languages))}; "
                "name the data that it was trained on"
            )
    if None not in languages:
        source, target = (dictionaries[language] for language in languages)
        refuse_other_dictionaries(str(checkpoint), state, source, target)
