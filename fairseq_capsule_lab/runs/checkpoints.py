"""Selection of the checkpoints of a run folder: for `fairseq-capsule average`, and for evaluate.sh."""

import filecmp
import re
from pathlib import Path
from typing import Any, List, Sequence, Tuple

from tqdm import tqdm

from capsule_routing.errors import UserError
from fairseq_capsule_lab.runs.folder import BEST, EPOCH, KINDS, UPDATE, RunFolder
from fairseq_capsule_lab.runs.settings import Settings


def last_checkpoints(run_dir: Path, count: int, updates: bool = False) -> List[Path]:
    """Return the last `count` checkpoints of a run folder, oldest first.

    Args:
        run_dir: the `--save-dir` of a training.
        count: how many; if there are fewer, it is a UserError.
        updates: use checkpoints of updates (`checkpoint_E_U.pt`) instead of those of epochs (`checkpointE.pt`).
    """
    checkpoints = _numbered_checkpoints(run_dir, updates)
    _require(count, checkpoints, f"{run_dir}: {_kind(updates)}")
    return checkpoints[-count:]


def best_checkpoints(run_dir: Path, count: int, updates: bool = False) -> List[Path]:
    """Return the `count` checkpoints of a run folder with the best validation scores, best first.

    The files `checkpoint.best_METRIC_VALUE.pt`, which `--keep-best-checkpoints` writes, have the score in their name.
    If there are none, or with `updates`, the scores are read from the other checkpoints. The configuration in the
    checkpoints states whether higher or lower is better. Best checkpoints by several metrics are a UserError.

    Args: as for `last_checkpoints`.
    """
    from fairseq_capsule.checkpoints.averaging import load  # torch; the plan of an evaluation does not need it

    named = _matches(run_dir, BEST)
    if named and not updates:
        metrics = sorted({name["metric"] for _, name in named})
        if len(metrics) > 1:
            raise UserError(
                f"{run_dir}: best checkpoints by {' and '.join(metrics)}; name the files to average instead"
            )
        needed = f"{run_dir}: best checkpoints (fairseq-train --keep-best-checkpoints)"
        scored = [(float(name["value"]), path) for path, name in named]
        checkpoint = load(named[0][0])
    else:
        needed = f"{run_dir}: {_kind(updates)} with a validation score"
        scored, checkpoint = [], {}
        for path in tqdm(_numbered_checkpoints(run_dir, updates), desc="read scores", disable=None):
            checkpoint = load(path)
            if checkpoint["extra_state"].get("val_loss") is not None:
                scored.append((checkpoint["extra_state"]["val_loss"], path))
    _require(count, scored, needed)
    higher_is_better = checkpoint["cfg"].checkpoint.maximize_best_checkpoint_metric
    return [path for _, path in sorted(scored, reverse=higher_is_better)[:count]]


def _matches(run_dir: Path, kind: str) -> List[Tuple[Path, "re.Match[str]"]]:
    matches = ((path, KINDS[kind].fullmatch(path.name)) for path in sorted(run_dir.iterdir()))
    return [(path, match) for path, match in matches if match]


def _numbered_checkpoints(run_dir: Path, updates: bool) -> List[Path]:
    """Return the checkpoints of a folder, oldest first."""
    matches = _matches(run_dir, UPDATE if updates else EPOCH)
    return [path for path, name in sorted(matches, key=lambda item: [int(number) for number in item[1].groups()])]


def _kind(updates: bool) -> str:
    return f"update checkpoints ({UPDATE})" if updates else f"epoch checkpoints ({EPOCH})"


def _require(count: int, checkpoints: Sequence[Any], needed: str) -> None:
    if len(checkpoints) < count:
        raise UserError(f"{needed}: {len(checkpoints)} found, but {count} requested; request fewer or train longer")


def chosen_checkpoint(folder: RunFolder, choice: str) -> Tuple[Path, Tuple[str, ...]]:
    """The checkpoint that translates, and the command that makes it if it is missing or outdated.

    `choice` is last:N, best:N, one of them with :updates for the checkpoints of updates, or a file in the folder.
    """
    if Path(choice).name == choice and (folder.path / choice).is_file():  # tables read what is in the folder
        return folder.path / choice, ()
    many = re.fullmatch(r"(last|best):([1-9][0-9]*)(:updates)?", choice)
    if not many:
        raise UserError(
            f"--checkpoints {choice}: not last:N, best:N, one of them with :updates, or a file in {folder.path}"
        )
    kind, number = many[1], int(many[2])
    pool = BEST if kind == "best" and folder.count(BEST) else _last(folder)
    pool = UPDATE if many[3] else pool
    _require(number, range(folder.count(pool)), f"{folder.path}: checkpoints ({pool})")
    updates = pool == UPDATE
    average = folder.path / f"checkpoint_avg_{kind}{number}{'_updates' if updates else ''}.pt"
    if average.exists() and all(path.stat().st_mtime_ns <= average.stat().st_mtime_ns for path in folder.checkpoints()):
        return average, ()
    words = ["average", str(folder.path), f"--{kind}", str(number), *(["--updates"] if updates else [])]
    return average, ("fairseq-capsule", *words, "--output", str(average))


def default_choice(folder: RunFolder, settings: Settings) -> Tuple[str, str]:
    """The default of --checkpoints, and a note if it differs from the configuration or from the end of the training.

    It is the average of the checkpoints that the configuration keeps, or of as many as exist; without any, the best.
    """
    epochs = settings.get("checkpoint.keep_last_epochs")
    of_updates = settings.get("checkpoint.keep_interval_updates", 0)
    kept = of_updates if epochs is None else epochs
    pool = UPDATE if epochs is None and of_updates > 0 and folder.count(UPDATE) else _last(folder)
    number = min(kept, folder.count(pool))
    choice = f"last:{number}" if number > 0 else "checkpoint_best.pt"
    if number > 0 and pool != _last(folder):
        choice += ":updates"
    if number != kept:
        problem = f"{folder.path} has {number} of the {kept} checkpoints that are averaged by default"
        return choice, f"{problem}; using {choice}"
    last = folder.last_checkpoint
    # At the end of an epoch fairseq copies its checkpoint to checkpoint_last.pt.
    if number > 0 and last.exists():
        newest = _numbered_checkpoints(folder.path, pool == UPDATE)[-1]
        if not filecmp.cmp(newest, last, shallow=False):
            problem = f"{last.name} is newer than {newest.name}, the newest of the checkpoints that are averaged"
            return choice, f"{problem}; --checkpoints {last.name} translates with it"
    return choice, ""


def _last(folder: RunFolder) -> str:
    """The kind of the checkpoints to average: those of epochs, or those of updates if the run keeps no epochs."""
    return UPDATE if not folder.count(EPOCH) and folder.count(UPDATE) else EPOCH
