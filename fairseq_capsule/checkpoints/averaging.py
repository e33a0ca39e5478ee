"""The mean of checkpoints."""

from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import torch
from omegaconf import OmegaConf
from torch import Tensor
from tqdm import tqdm

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.baseline import RoutingOptions, other_computation
from fairseq_capsule.checkpoints.belonging import Belonging, refuse_other
from fairseq_capsule.checkpoints.loading import belonging_of, model_options, read_checkpoint


def average_checkpoints(paths: Sequence[Path], routing_options: RoutingOptions) -> Dict[str, Any]:
    """Return a checkpoint that has the mean parameters of the checkpoints `paths`.

    The mean is computed in float64 and cast back to the type of each tensor. Everything else, including parameters that
    are not floating-point tensors, comes from the last file. Its optimiser state, average over updates (EMA) and
    validation score do not belong to the mean and are dropped. A file that is not a checkpoint, has no parameters, has
    one that is NaN or infinite, or differs from the first raises a UserError: in their names or shapes, in words or
    direction, or in an option of the computation, such as the number of heads or of iterations. `routing_options`
    returns the names of the options that a config's mechanisms set.
    """
    original: Optional[Tuple[Belonging, Any]] = None  # of the first checkpoint, with the options of its model
    sums: Dict[str, Tensor] = {}
    shapes: Dict[str, str] = {}  # of the first checkpoint
    for path in tqdm(paths, desc="average", unit=" checkpoints", disable=None):
        checkpoint = load(path)
        if not checkpoint["model"]:
            raise UserError(f"{path}: its model has no parameters; leave it out")
        own = {name: f"of shape {list(parameter.shape)}" for name, parameter in checkpoint["model"].items()}
        shapes = shapes or own
        for name in [*shapes, *own]:
            shape, first = own.get(name, "missing"), shapes.get(name, "missing")
            if shape != first:
                problem = f"parameter {name} is {shape}, in {paths[0]} it is {first}"
                raise UserError(f"{path}: {problem}; average checkpoints of one model")
        known, options = belonging_of(path, checkpoint), model_options(checkpoint)
        if original is None:
            original = known, options
        else:
            refuse_other(known, original[0])
            difference = other_computation(options, original[1], routing_options)
            if difference:
                problem = f"its {difference[0]} is {difference[1]}, in {paths[0]} it is {difference[2]}"
                raise UserError(f"{path}: {problem}; average checkpoints of one model")
        for name, tensor in checkpoint["model"].items():
            if tensor.is_floating_point():
                if not tensor.isfinite().all():
                    raise UserError(f"{path}: parameter {name} is not finite; leave it out")
                sums[name] = sums[name] + tensor if name in sums else tensor.double()
    parameters = OrderedDict(checkpoint["model"])
    for name in [*sums]:
        parameters[name] = (sums.pop(name) / len(paths)).to(parameters[name].dtype)
    kept = {key: value for key, value in checkpoint["extra_state"].items() if key not in ("ema", "ema_fp32_params")}
    return {
        **checkpoint,
        # As fairseq saves it. The only interpolations are those that fairseq adds to configs of older options.
        "cfg": OmegaConf.to_container(checkpoint["cfg"], resolve=True, enum_to_str=True),
        "model": _tied(parameters),
        "last_optimizer_state": None,
        "extra_state": {**kept, "val_loss": None, "averaged": [path.name for path in paths]},
    }


def load(path: Path) -> Dict[str, Any]:
    """Read a fairseq checkpoint to the CPU. A file that is not a checkpoint of a training raises a UserError."""
    checkpoint = read_checkpoint(path)
    if not all(isinstance(checkpoint.get(part), Mapping) for part in ("cfg", "model", "extra_state")):
        raise UserError(f"{path}: damaged, or not a checkpoint of fairseq-train; leave it out")
    return checkpoint


def _tied(parameters: "OrderedDict[str, Tensor]") -> "OrderedDict[str, Tensor]":
    """Let equal matrices share one storage. A training on a GPU saves tied embeddings once for each name."""
    first: Dict[Tuple[torch.Size, torch.dtype, float], Tensor] = {}
    for name, tensor in parameters.items():
        if tensor.dim() > 1:
            twin = first.setdefault((tensor.shape, tensor.dtype, tensor.double().sum().item()), tensor)
            parameters[name] = twin if torch.equal(twin, tensor) else tensor
    return parameters
