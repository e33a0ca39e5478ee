"""Averaging of a training's checkpoints: which of them, and their mean."""

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

EPOCH_CHECKPOINT = re.compile(r"checkpoint(?P<epoch>\d+)\.pt")
UPDATE_CHECKPOINT = re.compile(r"checkpoint_(?P<epoch>\d+)_(?P<update>\d+)\.pt")
BEST_CHECKPOINT = re.compile(r"checkpoint\.best_(?P<metric>.+)_(?P<value>\d+(\.\d+)?)\.pt")


def last_checkpoints(run_dir: Path, count: int, updates: bool = False, upto: Optional[int] = None) -> List[Path]:
    """The last `count` checkpoints of a training's folder, oldest first.

    `updates` takes those saved every so many updates (`checkpoint_E_U.pt`) instead of those saved at the end of an
    epoch (`checkpointE.pt`); `upto` leaves out epochs after that one.

    Raises:
        UserError: no such folder, or fewer than `count` checkpoints in it.
    """
    found = _numbered_checkpoints(run_dir, updates, upto)
    _require(count, found, f"{run_dir}: {_kind(updates, upto)}")
    return found[-count:]


def best_checkpoints(run_dir: Path, count: int, updates: bool = False, upto: Optional[int] = None) -> List[Path]:
    """The `count` checkpoints of a training's folder with the best validation score, best first.

    The score stands in the name of the `checkpoint.best_METRIC_VALUE.pt` files that `--keep-best-checkpoints` leaves.
    Where there are none, or where `updates` or `upto` choose among the others (a best checkpoint's name does not tell
    its epoch), each checkpoint is asked for the score it was saved with. Whether higher or lower is better is part of
    the training's configuration, which every checkpoint holds.

    Raises:
        UserError: no such folder, fewer than `count` checkpoints with a score, or scores of several metrics.
    """
    named = _matches(run_dir, BEST_CHECKPOINT)
    if named and not updates and upto is None:
        metrics = sorted({name["metric"] for _, name in named})
        if len(metrics) > 1:
            raise UserError(
                f"{run_dir}: best checkpoints by {' and '.join(metrics)}; name the files to average instead"
            )
        wanted = f"{run_dir}: best checkpoints (fairseq-train --keep-best-checkpoints)"
        scored = [(float(name["value"]), path) for path, name in named]
        checkpoint = load(named[0][0])
    else:
        wanted = f"{run_dir}: {_kind(updates, upto)} with a validation score"
        scored, checkpoint = [], {}
        for path in tqdm(_numbered_checkpoints(run_dir, updates, upto), desc="read scores", disable=None):
            checkpoint = load(path)
            if checkpoint["extra_state"].get("val_loss") is not None:
                scored.append((checkpoint["extra_state"]["val_loss"], path))
    _require(count, scored, wanted)
    higher_is_better = checkpoint["cfg"].checkpoint.maximize_best_checkpoint_metric
    return [path for _, path in sorted(scored, reverse=higher_is_better)[:count]]


def average_checkpoints(paths: Sequence[Path]) -> Dict[str, Any]:
    """One checkpoint whose parameters are the mean of those of `paths`.

    Summed in float64 and cast back to each tensor's own type. Whatever is no floating-point tensor, and everything but
    the parameters, is the last file's; its optimiser state, its average over updates (EMA) and its validation score
    are dropped, because they do not belong to the mean.

    Raises:
        UserError: a file that is no checkpoint, whose parameters differ in name or shape from the first one's, or
            that has no parameters or some that are not finite.
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
        # As fairseq saves it: a DictConfig is no plain data, and would be refused when loaded. What is resolved is
        # fairseq's own interpolations, of a config made of older options; a checkpoint with others is not loaded.
        "cfg": OmegaConf.to_container(checkpoint["cfg"], resolve=True, enum_to_str=True),
        "model": _tied(parameters),
        "last_optimizer_state": None,
        "extra_state": {**extra_state, "val_loss": None, "averaged": [str(path) for path in paths]},
    }


def load(path: Path) -> Dict[str, Any]:
    """A fairseq checkpoint on the CPU.

    Raises:
        UserError: something else than a checkpoint.
    """
    checkpoint = read_checkpoint(path)
    if not all(isinstance(checkpoint.get(part), Mapping) for part in ("cfg", "model", "extra_state")):
        raise UserError(f"{path}: damaged, or no checkpoint of fairseq-train; leave it out")
    return checkpoint


def _matches(run_dir: Path, pattern: "re.Pattern[str]") -> List[Tuple[Path, "re.Match[str]"]]:
    if not run_dir.is_dir():
        problem = "a file where a folder should be" if run_dir.exists() else "no such folder"
        raise UserError(f"{run_dir}: {problem}; give the --save-dir of a training")
    matches = ((path, pattern.fullmatch(path.name)) for path in sorted(run_dir.iterdir()))
    return [(path, match) for path, match in matches if match]


def _numbered_checkpoints(run_dir: Path, updates: bool, upto: Optional[int]) -> List[Path]:
    """Oldest first."""
    found = _matches(run_dir, UPDATE_CHECKPOINT if updates else EPOCH_CHECKPOINT)
    found = [(path, name) for path, name in found if upto is None or int(name["epoch"]) <= upto]
    return [path for path, name in sorted(found, key=lambda item: [int(number) for number in item[1].groups()])]


def _kind(updates: bool, upto: Optional[int]) -> str:
    kind = "update checkpoints (checkpoint_E_U.pt)" if updates else "epoch checkpoints (checkpointE.pt)"
    return kind if upto is None else f"{kind} up to epoch {upto}"


def _require(count: int, found: Sequence[Any], wanted: str) -> None:
    if len(found) < count:
        raise UserError(f"{wanted}: {len(found)}, but {count} are asked for; ask for fewer or train longer")


def _shapes(checkpoint: Dict[str, Any]) -> Dict[str, str]:
    return {
        name: f"of shape {list(entry.shape)}" if isinstance(entry, Tensor) else "no tensor"
        for name, entry in checkpoint["model"].items()
    }


def _require_same_shapes(path: Path, shapes: Dict[str, str], first_path: Path, first_shapes: Dict[str, str]) -> None:
    for name in [*first_shapes, *shapes]:
        here, there = shapes.get(name, "missing"), first_shapes.get(name, "missing")
        if here != there:
            raise UserError(
                f"{path}: parameter {name} is {here}, in {first_path} it is {there}; average checkpoints of one model"
            )


def _tied(parameters: "OrderedDict[str, Tensor]") -> "OrderedDict[str, Tensor]":
    """Equal matrices share one storage, which is saved once: training on a GPU saves tied embeddings once a name."""
    first: Dict[Tuple[torch.Size, torch.dtype, float], Tensor] = {}
    for name, tensor in parameters.items():
        if isinstance(tensor, Tensor) and tensor.dim() > 1:
            twin = first.setdefault((tensor.shape, tensor.dtype, tensor.double().sum().item()), tensor)
            parameters[name] = twin if torch.equal(twin, tensor) else tensor
    return parameters
