"""The checkpoint that a training of fairseq continues, or starts from."""

import os
from typing import Any, Mapping, NamedTuple, Optional

from capsule_routing.errors import UserError, counted

LAST = "checkpoint_last.pt"


class Restored(NamedTuple):
    """A checkpoint that a training loads: the file, and the option that names it, or "" for the training's own."""

    path: str
    option: str

    def __str__(self) -> str:
        return f"--{self.option.replace('_', '-')} {self.path}" if self.option else self.path


def restored_checkpoint(options: Any) -> Optional[Restored]:
    """Return the checkpoint that fairseq loads with the checkpoint options of a training, or None if there is none.

    The own `checkpoint_last.pt` counts first, unless `restore_file` names another file. The `checkpoint_suffix` is a
    part of both names.
    """
    folder = getattr(options, "save_dir", None)
    if not folder:  # no training
        return None
    restore_file = getattr(options, "restore_file", None) or LAST
    file = restore_file.replace(".pt", (getattr(options, "checkpoint_suffix", None) or "") + ".pt")
    restored = Restored(file, "restore_file")
    if restore_file == LAST:
        restored = Restored(os.path.join(folder, file), "")
        given = [name for name in ("continue_once", "finetune_from_model") if getattr(options, name, None)]
        if given and not os.path.isfile(restored.path):
            restored = Restored(getattr(options, given[0]), given[0])
    return restored if os.path.isfile(restored.path) else None  # fairseq refuses or ignores a missing file


def refuse_ended_training(restored: Restored, state: Mapping[str, Any], options: Any, limits: Any) -> None:
    """Raise a UserError if a checkpoint has all epochs or updates of a training that continues it in another folder.

    fairseq would train nothing, or one update. `options` are its options of checkpoints, `limits` those of the
    optimisation. The own checkpoint of a training may have them: the training has ended.
    """
    if restored.option not in ("restore_file", "continue_once"):
        return
    begun: Any = (state.get("extra_state") or {}).get("train_iterator") or {}
    epochs = begun.get("epoch", 1) - 1  # it has the number of the next one
    updates = (state.get("optimizer_history") or [{}])[-1].get("num_updates", 0)
    done = {
        "epoch": 0 if getattr(options, "reset_dataloader", False) else epochs,
        "update": 0 if getattr(options, "reset_optimizer", False) else updates,
    }
    for unit, number in done.items():
        most = getattr(limits, f"max_{unit}", None) or 0
        if 0 < most <= number:
            more = f"give optimization.max_{unit} (--max-{unit}) above {number}"
            start = f"checkpoint.finetune_from_model (--finetune-from-model) in place of {restored.option}"
            raise UserError(f"{restored.path} has {counted(number, unit)}; {more}, or {start}")
