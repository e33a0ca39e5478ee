"""Initialisation of a model from the checkpoint of a trained baseline."""

import logging
from typing import Collection, Dict, List

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_capsule.checkpoints.reading import read_checkpoint
from fairseq_capsule.data.dictionaries import refuse_other_dictionaries
from fairseq_capsule.errors import UserError

logger = logging.getLogger(__name__)

# Buffers that older fairseq models save and that nothing reads.
WITHOUT_MEANING = ("version", "_float_tensor")


def init_from_baseline(
    model: BaseFairseqModel,
    path: str,
    source_dictionary: Dictionary,
    target_dictionary: Dictionary,
    added: Collection[str],
    removed: Collection[str],
):
    """Copy all parameters of a baseline into a model. The other parameters of the model keep their initialisation.

    Both numbers of parameters are logged.

    Args:
        path: the checkpoint of the baseline.
        source_dictionary, target_dictionary: the dictionaries of the data.
        added, removed: the names of the parameters that the model's mechanisms added to those of the baseline's kind,
            and of those that they removed.

    Raises:
        UserError: the baseline has another dictionary, other dimensions, parameters that the model does not have, or
            separate embeddings that the model shares. Or the model has parameters that are not in the baseline and that
            no mechanism adds.
    """
    state = read_checkpoint(path)
    if not isinstance(state.get("model"), dict):
        raise UserError(f"--init-from-baseline {path}: it contains no model")
    refuse_other_dictionaries(f"--init-from-baseline {path}", state, source_dictionary, target_dictionary)
    baseline = state["model"]
    model.upgrade_state_dict(baseline)
    own = model.state_dict()
    strangers = [
        name for name in baseline if name not in own and name not in removed and not name.endswith(WITHOUT_MEANING)
    ]
    if strangers:
        raise UserError(
            f"--init-from-baseline {path}: the model has no {_names(strangers)}; use the architecture, the layers "
            "and the options of the baseline"
        )
    for name, value in baseline.items():
        if name in own and own[name].shape != value.shape:
            raise UserError(
                f"--init-from-baseline {path}: {name} has the shape {tuple(value.shape)} there and "
                f"{tuple(own[name].shape)} in the model; use the dimensions of the baseline"
            )
    parameters = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    new = [name for name in parameters if name not in baseline]
    missing = [name for name in new if name not in added]
    if missing:
        raise UserError(
            f"--init-from-baseline {path}: it has no {_names(missing)}, which no mechanism adds; "
            "use the layers and the options of the baseline"
        )
    _check_sharing(path, model, baseline)
    model.load_state_dict({**own, **{name: value for name, value in baseline.items() if name in own}})

    logger.info(
        f"{path}: took {len(parameters) - len(new)} of the model's {len(parameters)} parameters; new: {_names(new)}"
    )


def _check_sharing(path: str, model: BaseFairseqModel, baseline: Dict[str, Tensor]) -> None:
    """Raise a UserError if the baseline has different values for embeddings that the model shares."""
    seen: Dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name not in baseline:
            continue
        other = seen.setdefault(id(parameter), name)
        if not torch.equal(baseline[name], baseline[other]):
            raise UserError(
                f"--init-from-baseline {path}: {other} and {name} differ there but are shared in the model; "
                "share only the embeddings that the baseline shares"
            )


def _names(names: List[str]) -> str:
    if not names:
        return "none"
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
