"""Loading of models from checkpoints. All commands of the package load models here."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from fairseq import checkpoint_utils
from fairseq.criterions import FairseqCriterion
from fairseq.dataclass.configs import DatasetConfig, GenerationConfig
from fairseq.dataclass.utils import overwrite_args_by_name
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, BaseFairseqModel
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from omegaconf import DictConfig, OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.contents import require_finite
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.data.dictionaries import require_dictionaries

Loaded = Tuple[BaseFairseqModel, DictConfig, FairseqTask]
LARGEST_RESULT = 2.0**16  # of a decoder; float16 has no larger number
BUILT = ("model", "task", "tokenizer", "bpe", "generation")  # parts of a config whose files fairseq reads


def load_model(checkpoint: Path, data: Path, overrides: Optional[Dict[str, Any]] = None) -> Loaded:
    """Load a checkpoint's model in eval mode on the CPU, its config, and its task with binarised data.

    `overrides` replace options of the checkpoint, as in fairseq's `--model-overrides`. A broken checkpoint or
    dictionary, a dictionary of another run, or options that do not fit the parameters raise a UserError. A missing file
    raises an OSError.
    """
    if os.pathsep in str(data):
        raise UserError(f"{data}: fairseq would read it as several folders, because of the {os.pathsep!r}; rename it")
    importlib.import_module("fairseq_capsule.tasks")  # by name, because the models import this package
    options = {"data": str(data), **(overrides or {})}
    state = read_checkpoint(checkpoint)
    with building(checkpoint, "no model can be built from its options and parameters"):
        config = _require_parts(checkpoint, state)
        require_finite(checkpoint, state["model"])  # otherwise an assertion of fairseq fails in beam search
        require_dictionaries(str(checkpoint), state, data)
        if isinstance(config, Namespace):
            vars(config).update(options)
        else:
            overwrite_args_by_name(config, options)
        _require_regular_files(checkpoint, config)
        (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], state=state)
        _require_options(checkpoint, cfg)
        for name, _ in model.named_parameters():
            if name in state["model"] and not state["model"][name].is_floating_point():
                raise UserError(f"{checkpoint}: {name} is of type {state['model'][name].dtype}, which no parameter has")
        _refuse_absurd_results(checkpoint, model.eval(), task)
    return model, cfg, task


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
        require_finite(checkpoint, criterion.state_dict())
    return criterion.eval().cuda() if torch.cuda.is_available() else criterion.eval()


def _require_parts(checkpoint: Path, state: Mapping[str, Any]) -> Union[DictConfig, Namespace]:
    """Return the options of a checkpoint, which must have parameters and name a known architecture and task."""
    parameters = state.get("model")
    if not isinstance(parameters, Mapping) or not parameters:
        raise UserError(f"{checkpoint}: it has no model parameters; name a checkpoint that a training wrote")
    config = state.get("args") or state.get("cfg")
    if isinstance(config, Namespace):
        architecture, task = getattr(config, "arch", None), getattr(config, "task", None)
    elif isinstance(config, DictConfig):
        architecture, task = _name(config.get("model")), _name(config.get("task"))
    else:
        raise UserError(f"{checkpoint}: it has no model options; name a checkpoint that a training wrote")
    _require_known(checkpoint, "architecture", architecture, {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY})
    _require_known(checkpoint, "task", task, TASK_REGISTRY)
    return config


def _require_known(checkpoint: Path, what: str, name: Any, registry: Mapping[str, Any]) -> None:
    if not isinstance(name, str) or name not in registry:
        problem = f"its {what} {name!r} is unknown" if name else f"its options name no {what}"
        plugin = ", or give the --user-dir of the plugin that defines it (in Python, import it)" if name else ""
        raise UserError(f"{checkpoint}: {problem}; name a checkpoint of fairseq or of this package{plugin}")


def _require_options(checkpoint: Path, cfg: DictConfig) -> None:
    """Refuse unknown tokenisers and BPEs, and options of batches and of the search that are not of fairseq's types.

    fairseq reads them after it has built the model. False stands for no choice where later versions have None.
    """
    for part in ("tokenizer", "bpe"):
        name = cfg[part] if isinstance(cfg[part], str) else _name(cfg[part])
        if name or not isinstance(cfg[part], (DictConfig, type(None))):
            _require_known(checkpoint, part, name or cfg[part], REGISTRIES[part]["registry"])
    for part, schema in (("dataset", DatasetConfig), ("generation", GenerationConfig)):
        if not isinstance(cfg.get(part), DictConfig):
            raise UserError(f"{checkpoint}: it has no {part} options; name a checkpoint that a training wrote")
        names = {item.name for item in dataclasses.fields(schema)}
        options = {name: value for name, value in cfg[part].items() if name in names and value is not False}
        OmegaConf.merge(OmegaConf.structured(schema), options)


def _require_regular_files(checkpoint: Path, config: Union[DictConfig, Namespace]) -> None:
    """Refuse options that name a pipe or a device, which may never end. The training's own, such as its log, may."""
    parts: List[Any] = [vars(config)] if isinstance(config, Namespace) else [config.get(part) for part in BUILT]
    while parts:
        part = parts.pop()
        for name, value in part.items() if isinstance(part, Mapping) else ():
            parts.append(value)
            if isinstance(value, str) and os.path.exists(value) and not (os.path.isfile(value) or os.path.isdir(value)):
                raise UserError(f"{checkpoint}: its option {name} names {value}, a pipe or a device; name a file")


@torch.no_grad()
def _refuse_absurd_results(checkpoint: Path, model: BaseFairseqModel, task: FairseqTask) -> None:
    """Let a model's decoder raise a UserError if it computes numbers that no trained model computes.

    Finite parameters can be too large, also those of a single word. One word is tried at once.
    """
    decoder = getattr(model, "decoder", model)  # some models of fairseq are an encoder
    # fairseq's search calls it, without the hooks of torch. A partial, which can be copied with its decoder.
    vars(decoder)["forward"] = functools.partial(_checked_results, decoder, str(checkpoint))
    words = task.source_dictionary
    inputs = {"src_tokens": torch.tensor([[words.unk(), words.eos()]]), "src_lengths": torch.tensor([2])}
    inputs["prev_output_tokens"] = torch.tensor([[task.target_dictionary.eos()]])
    parameters = [item for item in inspect.signature(model.forward).parameters.values() if item.default is item.empty]
    # Other models need more arguments, such as one that is not autoregressive.
    if {item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD} <= inputs.keys():
        model(**inputs)


def _checked_results(decoder: Any, checkpoint: str, *args: Any, **kwargs: Any) -> Any:
    results = type(decoder).forward(decoder, *args, **kwargs)
    if not isinstance(results, tuple):  # of some models of fairseq
        return results
    low, high = results[0].aminmax()
    if not (low >= -LARGEST_RESULT and high <= LARGEST_RESULT):  # also of NaN
        problem = "what its model computes is not finite, or absurdly large, so its parameters are damaged"
        raise UserError(f"{checkpoint}: {problem}; copy the file again, or train again")
    return results


def _name(part: Any) -> Any:
    return part.get("_name") if isinstance(part, Mapping) else getattr(part, "_name", None)
