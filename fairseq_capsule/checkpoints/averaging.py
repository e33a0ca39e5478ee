"""Averaging of checkpoints: their selection and their mean."""

import re
from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from omegaconf import OmegaConf
from torch import Tensor
from tqdm import tqdm

from fairseq_capsule.checkpoints.reading import floating_point, read_checkpoint, require_finite
from fairseq_capsule.errors import UserError
from fairseq_capsule_runs.folder import BEST, EPOCH, KINDS, UPDATE


def last_checkpoints(run_dir: Path, count: int, updates: bool = False, upto: Optional[int] = None) -> List[Path]:
    """Return the last `count` checkpoints of a run folder, oldest first.

    Args:
        run_dir: the `--save-dir` of a training.
        count: how many checkpoints to return.
        updates: use checkpoints saved after a number of updates (`checkpoint_E_U.pt`) instead of those saved after an
            epoch (`checkpointE.pt`).
        upto: the last epoch to use; all by default.

    Raises:
        UserError: the folder does not exist, or has fewer than `count` checkpoints.
    """
    found = _numbered_checkpoints(run_dir, updates, upto)
    _require(count, found, f"{run_dir}: {_kind(updates, upto)}")
    return found[-count:]


def best_checkpoints(run_dir: Path, count: int, updates: bool = False, upto: Optional[int] = None) -> List[Path]:
    """Return the `count` checkpoints of a run folder with the best validation scores, best first.

    The files `checkpoint.best_METRIC_VALUE.pt`, which `--keep-best-checkpoints` writes, have the score in their name.
    If there are none, the scores are read from the other checkpoints. This also happens with `updates` or `upto`,
    because the name of a best checkpoint does not contain the epoch. The configuration in the checkpoints states
    whether higher or lower is better.

    Args: as for `last_checkpoints`.

    Raises:
        UserError: the folder does not exist, has fewer than `count` checkpoints with a score, or has best checkpoints
            by several metrics.
    """
    named = _matches(run_dir, BEST)
    if named and not updates and upto is None:
        metrics = sorted({name["metric"] for _, name in named})
        if len(metrics) > 1:
            raise UserError(
                f"{run_dir}: best checkpoints by {' and '.join(metrics)}; name the files to average instead"
            )
        needed = f"{run_dir}: best checkpoints (fairseq-train --keep-best-checkpoints)"
        scored = [(float(name["value"]), path) for path, name in named]
        checkpoint = load(named[0][0])
    else:
        needed = f"{run_dir}: {_kind(updates, upto)} with a validation score"
        scored, checkpoint = [], {}
        for path in tqdm(_numbered_checkpoints(run_dir, updates, upto), desc="read scores", disable=None):
            checkpoint = load(path)
            if checkpoint["extra_state"].get("val_loss") is not None:
                scored.append((checkpoint["extra_state"]["val_loss"], path))
    _require(count, scored, needed)
    higher_is_better = checkpoint["cfg"].checkpoint.maximize_best_checkpoint_metric
    return [path for _, path in sorted(scored, reverse=higher_is_better)[:count]]


def average_checkpoints(paths: Sequence[Path]) -> Dict[str, Any]:
    """Return a checkpoint that has the mean parameters of the checkpoints `paths`.

    The mean is computed in float64 and cast back to the type of each tensor. Everything else, including parameters that
    are not floating-point tensors, comes from the last file. Its optimiser state, average over updates (EMA) and
    validation score are dropped, because they do not belong to the mean.

    Raises:
        UserError: a file is not a checkpoint, has no parameters, has parameters that are not finite, or differs from
            the first file in the names or shapes of the parameters.
    """
    sums: Dict[str, Tensor] = {}
    shapes: Dict[str, str] = {}
    for path in tqdm(paths, desc="average", unit=" checkpoints", disable=None):
        checkpoint = load(path)
        require_finite(path, checkpoint)
        shapes = shapes or _shapes(checkpoint)
        _require_same_shapes(path, _shapes(checkpoint), paths[0], shapes)
        for name, tensor in floating_point(checkpoint):
            sums[name] = sums[name] + tensor if name in sums else tensor.double()
    parameters = OrderedDict(checkpoint["model"])
    for name, tensor in floating_point(checkpoint):
        parameters[name] = (sums.pop(name) / len(paths)).to(tensor.dtype)
    dropped = ("ema", "ema_fp32_params", "val_loss")
    extra_state = {key: value for key, value in checkpoint["extra_state"].items() if key not in dropped}
    return {
        **checkpoint,
        # Converted as fairseq saves it, because a DictConfig is not plain data and would be refused when loaded. This
        # resolves only interpolations that fairseq adds to configs of older options. A checkpoint with other ones is
        # not loaded.
        "cfg": OmegaConf.to_container(checkpoint["cfg"], resolve=True, enum_to_str=True),
        "model": _tied(parameters),
        "last_optimizer_state": None,
        "extra_state": {**extra_state, "val_loss": None, "averaged": [path.name for path in paths]},
    }


def load(path: Path) -> Dict[str, Any]:
    """Read a fairseq checkpoint to the CPU.

    Raises:
        UserError: the file is not a checkpoint of a training.
    """
    checkpoint = read_checkpoint(path)
    if not all(isinstance(checkpoint.get(part), Mapping) for part in ("cfg", "model", "extra_state")):
        raise UserError(f"{path}: damaged, or not a checkpoint of fairseq-train; leave it out")
    return checkpoint


def _matches(run_dir: Path, kind: str) -> List[Tuple[Path, "re.Match[str]"]]:
    if not run_dir.is_dir():
        problem = "a file, not a folder" if run_dir.exists() else "no such folder"
        raise UserError(f"{run_dir}: {problem}; give the --save-dir of a training")
    matches = ((path, KINDS[kind].fullmatch(path.name)) for path in sorted(run_dir.iterdir()))
    return [(path, match) for path, match in matches if match]


def _numbered_checkpoints(run_dir: Path, updates: bool, upto: Optional[int]) -> List[Path]:
    """Return the checkpoints of a folder, oldest first."""
    found = _matches(run_dir, UPDATE if updates else EPOCH)
    found = [(path, name) for path, name in found if upto is None or int(name["epoch"]) <= upto]
    return [path for path, name in sorted(found, key=lambda item: [int(number) for number in item[1].groups()])]


def _kind(updates: bool, upto: Optional[int]) -> str:
    kind = f"update checkpoints ({UPDATE})" if updates else f"epoch checkpoints ({EPOCH})"
    return kind if upto is None else f"{kind} up to epoch {upto}"


def _require(count: int, found: Sequence[Any], needed: str) -> None:
    if len(found) < count:
        raise UserError(f"{needed}: {len(found)} found, but {count} requested; request fewer or train longer")


def _shapes(checkpoint: Dict[str, Any]) -> Dict[str, str]:
    return {name: f"of shape {list(parameter.shape)}" for name, parameter in checkpoint["model"].items()}


def _require_same_shapes(path: Path, shapes: Dict[str, str], first_path: Path, first_shapes: Dict[str, str]) -> None:
    for name in [*first_shapes, *shapes]:
        here, there = shapes.get(name, "missing"), first_shapes.get(name, "missing")
        if here != there:
            raise UserError(
                f"{path}: parameter {name} is {here}, in {first_path} it is {there}; average checkpoints of one model"
            )


def _tied(parameters: "OrderedDict[str, Tensor]") -> "OrderedDict[str, Tensor]":
    """Let equal matrices share one storage, so that it is saved once.

    A training on a GPU saves tied embeddings once for each name.
    """
    first: Dict[Tuple[torch.Size, torch.dtype, float], Tensor] = {}
    for name, tensor in parameters.items():
        if tensor.dim() > 1:
            twin = first.setdefault((tensor.shape, tensor.dtype, tensor.double().sum().item()), tensor)
            parameters[name] = twin if torch.equal(twin, tensor) else tensor
    return parameters
