"""Loading of models from checkpoints. All commands of the package load models here."""

import contextlib
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Dict, Optional, Tuple, Union

import torch
from fairseq import checkpoint_utils
from fairseq.criterions import FairseqCriterion
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.belonging import of_data, refuse_other, refuse_several_directions
from fairseq_capsule.checkpoints.loading import belonging_of, override_options, read_belonging, read_checkpoint

Loaded = Tuple[BaseFairseqModel, DictConfig, FairseqTask]


def load_model(checkpoint: Path, data: Path, overrides: Optional[Dict[str, Any]] = None) -> Loaded:
    """Load a checkpoint's model in eval mode on the CPU, its config, and its task with binarised data.

    `overrides` replace options of the checkpoint, as in fairseq's `--model-overrides`. A broken checkpoint or
    dictionary, other words or another direction than those of its training, or options that do not fit the parameters
    raise a UserError. A missing file raises an OSError. `source_lang` and `target_lang` in `overrides` name the
    direction in which the data are read, whatever the names of its files.
    """
    options = {"data": str(data), **(overrides or {})}
    state = read_checkpoint(checkpoint)
    with building(checkpoint, "no model can be built from its options and parameters"):
        config = state.get("args") or state["cfg"]
        refuse_unknown_architecture(checkpoint, config.arch if isinstance(config, Namespace) else config.model._name)
        known = belonging_of(checkpoint, state)
        source, target = options.get("source_lang"), options.get("target_lang")
        refuse_other(known, of_data(data, known, (source, target) if source and target else None))
        override_options(state, options)
        (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], state=state)
    return model.eval(), cfg, task


@contextlib.contextmanager
def building(
    checkpoint: Union[str, Path, None], failure: str, advice: str = "copy the file again, or train again"
) -> Iterator[None]:
    """Raise what fails because of a checkpoint's content again, as one line that names the file.

    fairseq, OmegaConf, torch and the libraries of subwords raise many types. subword-nmt ends the process.
    """
    try:
        yield
    except UserError as error:
        if str(error).startswith("--"):  # an option of the checkpoint, as if the user had given it
            raise UserError(f"{checkpoint}: {error}") from error
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.filename:  # its message names a file
            raise
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{checkpoint}: {failure} ({type(error).__name__}: {reason}); {advice}") from error


def require_one_direction(checkpoints: Iterable[Union[str, Path]]) -> None:
    """Raise a UserError if checkpoints that are compared or used together translate in different directions."""
    files = list(checkpoints)
    if len(files) > 1:
        refuse_several_directions([read_belonging(file) for file in files])


def load_with_data(checkpoint: Path, data: Path, overrides: Optional[Dict[str, Any]] = None) -> Loaded:
    """Load a model as `load_model` does, and move it to the GPU if there is one."""
    model, cfg, task = load_model(checkpoint, data, overrides)
    return model.cuda() if torch.cuda.is_available() else model, cfg, task


def load_criterion(checkpoint: Path, cfg: DictConfig, task: FairseqTask) -> FairseqCriterion:
    """Load the criterion that a checkpoint was trained with, with its parameters, on the GPU if there is one.

    fairseq restores these parameters only in training. `cfg` and `task` are results of `load_model`.
    """
    with building(checkpoint, "no criterion can be built from its options and parameters"):
        criterion = task.build_criterion(cfg.criterion)
        criterion.load_state_dict(read_checkpoint(checkpoint)["criterion"])
    return criterion.eval().cuda() if torch.cuda.is_available() else criterion.eval()


def refuse_unknown_architecture(checkpoint: Union[str, Path], name: Any) -> None:
    """Raise a UserError that names a checkpoint if its architecture is not registered."""
    if name not in MODEL_REGISTRY and name not in ARCH_MODEL_REGISTRY:
        remedy = "give the --user-dir of the plugin that defines it (in Python, import it)"
        raise UserError(f"{checkpoint}: its architecture {name!r} is unknown; {remedy}")
