"""The checkpoint from which a training by train.sh goes on: its words, its direction and its end are compared first."""

from argparse import Namespace
from pathlib import Path

from capsule_routing.text.folders import language_pairs
from fairseq_capsule_lab.runs.folder import LAST
from fairseq_capsule_lab.runs.settings import Settings


def refuse_foreign_start(settings: Settings, data: Path, out: Path) -> None:
    """Raise a UserError if a training goes on from a checkpoint that has other words or another direction than `data`.

    It is also one if the checkpoint of another training has all epochs or updates. Tasks of ours compare the own last
    checkpoint themselves; fairseq's does not.
    """
    options = Namespace(**{**settings.config.get("checkpoint", {}), "save_dir": str(out)})
    own = (out / LAST).exists()
    if own:  # train.sh continues from it, whatever the configuration names
        options.restore_file = LAST
    named = any(getattr(options, name, None) for name in ("restore_file", "finetune_from_model", "continue_once"))
    if settings.get("task._name") != "translation" and (own or not named):
        return
    from fairseq_capsule.checkpoints import belonging, restoring
    from fairseq_capsule.checkpoints.loading import belonging_of, read_options

    restored = restoring.restored_checkpoint(options)
    if restored is None:
        return
    state = read_options(restored.path)
    known = belonging_of(restored.path, state)
    pairs = [settings.get(f"task.{side}_lang") for side in ("source", "target")], *language_pairs(data, "train")
    languages = next(((source, target) for source, target in pairs if source and target), None)
    alike = not settings.get("task.from_other_languages", False)
    belonging.refuse_other(known, belonging.of_data(data, known, languages), alike)
    restoring.refuse_ended_training(restored, state, options, Namespace(**settings.config.get("optimization", {})))
