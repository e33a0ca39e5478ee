"""A model's start from a trained baseline's checkpoint."""

import logging
import os
from typing import Any, Dict

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from torch import Tensor, nn

from fairseq_capsule.errors import UserError

logger = logging.getLogger(__name__)


def init_from_baseline(model: nn.Module, path: str, source_dictionary: Dictionary, target_dictionary: Dictionary):
    """Take over every parameter of the same name and shape; the others keep their initialisation.

    How many were taken is logged. Checkpoints hold no dictionary: sizes are always compared, words where the folder
    that the baseline was trained on is there.

    Raises:
        UserError: not one parameter fits, the baseline was trained with another dictionary, or it has two embeddings
            where the model shares one.
    """
    # Through the module: the plugin's own reader stands there.
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    if not isinstance(state.get("model"), dict):
        raise UserError(f"--init-from-baseline {path}: it holds no model")
    baseline = state["model"]
    dictionaries = {"encoder": source_dictionary, "decoder": target_dictionary}
    for side, dictionary in dictionaries.items():
        _check_dictionary(path, state, side, dictionary)

    own = model.state_dict()
    fitting = {name: value for name, value in baseline.items() if name in own and own[name].shape == value.shape}
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    if not parameters & set(fitting):
        raise UserError(f"--init-from-baseline {path}: no parameter of it has the name and shape of one of the model's")
    _check_sharing(path, model, fitting)
    model.load_state_dict({**own, **fitting})

    new = sorted(parameters - set(fitting))
    unused = sorted(set(baseline) - set(fitting))
    logger.info(
        f"{path}: took {len(parameters) - len(new)} of the model's {len(parameters)} parameters; new: {_names(new)}"
    )
    if unused:
        logger.warning(f"{path}: {len(unused)} of its tensors fit nothing in the model: {_names(unused)}")


def _check_dictionary(path: str, state: Dict[str, Any], side: str, dictionary: Dictionary) -> None:
    embeddings = state["model"].get(f"{side}.embed_tokens.weight")
    if embeddings is not None and len(embeddings) != len(dictionary):
        raise UserError(
            f"--init-from-baseline {path}: its {side}'s dictionary has {len(embeddings)} entries, the data's "
            f"{len(dictionary)}; binarise the data with the baseline's dictionary"
        )
    config = state.get("cfg") or {}
    task = config.get("task") if config else state.get("args")
    option = (lambda name: getattr(task, name, None)) if not isinstance(task, dict) else task.get
    folder, language = option("data"), option("source_lang" if side == "encoder" else "target_lang")
    if not folder or not language:
        return
    file = os.path.join(str(folder).split(os.pathsep)[0], f"dict.{language}.txt")
    if os.path.isfile(file) and Dictionary.load(file).symbols != dictionary.symbols:
        raise UserError(
            f"--init-from-baseline {path}: the words of {file}, which it was trained with, are not the data's; "
            "binarise the data with the baseline's dictionary"
        )


def _check_sharing(path: str, model: nn.Module, fitting: Dict[str, Tensor]) -> None:
    """Names of one and the same parameter must have one and the same value."""
    seen: Dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name not in fitting:
            continue
        other = seen.setdefault(id(parameter), name)
        if not torch.equal(fitting[name], fitting[other]):
            raise UserError(
                f"--init-from-baseline {path}: {other} and {name} differ there and are shared in the model; "
                "share the embeddings that the baseline shares"
            )


def _names(names) -> str:
    if not names:
        return "none"
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
