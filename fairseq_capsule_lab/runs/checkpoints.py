"""Selection of the checkpoints of a run folder."""

import re
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple

from tqdm import tqdm

from fairseq_capsule.checkpoints.averaging import load
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs.folder import BEST, EPOCH, KINDS, UPDATE


def last_checkpoints(run_dir: Path, count: int, updates: bool = False, upto: Optional[int] = None) -> List[Path]:
    """Return the last `count` checkpoints of a run folder, oldest first.

    Args:
        run_dir: the `--save-dir` of a training.
        count: how many checkpoints to return.
        updates: use checkpoints saved after a number of updates (`checkpoint_E_U.pt`) instead of those saved after an
            epoch (`checkpointE.pt`).
        upto: the last epoch to use; all by default.

    Raises:
        LabError: the folder does not exist, or has fewer than `count` checkpoints.
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
        LabError: the folder does not exist, has fewer than `count` checkpoints with a score, or has best checkpoints
            by several metrics.
    """
    named = _matches(run_dir, BEST)
    if named and not updates and upto is None:
        metrics = sorted({name["metric"] for _, name in named})
        if len(metrics) > 1:
            raise LabError(f"{run_dir}: best checkpoints by {' and '.join(metrics)}; name the files to average instead")
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


def _matches(run_dir: Path, kind: str) -> List[Tuple[Path, "re.Match[str]"]]:
    if not run_dir.is_dir():
        problem = "a file, not a folder" if run_dir.exists() else "no such folder"
        raise LabError(f"{run_dir}: {problem}; give the --save-dir of a training")
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
        raise LabError(f"{needed}: {len(found)} found, but {count} requested; request fewer or train longer")
