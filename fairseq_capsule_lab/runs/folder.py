"""The run folder: the files that train.sh and evaluate.sh write, in one class.

| file | |
|---|---|
| `settings.json` | the settings that bind the folder to one training |
| `manifest.json` | every start: command, versions, hardware, times, how it ended |
| `finished` | exists after the training has finished |
| `checkpoint*.pt`, `train.log` | files of fairseq |
| `RESULTS/SPLIT/` | results of evaluate.sh, by default `evaluation/test/` |
"""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from capsule_routing.errors import UserError
from fairseq_capsule_lab.files import as_json, replacing, write_whole
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.stages import difference

LAST = "checkpoint_last.pt"
EPOCH, UPDATE, BEST = "checkpointE.pt", "checkpoint_E_U.pt", "checkpoint.best_METRIC_VALUE.pt"
KINDS = {
    EPOCH: re.compile(r"checkpoint(?P<epoch>\d+)\.pt"),
    UPDATE: re.compile(r"checkpoint_(?P<epoch>\d+)_(?P<update>\d+)\.pt"),
    BEST: re.compile(r"checkpoint\.best_(?P<metric>.+)_(?P<value>\d+(\.\d+)?)\.pt"),
}
_SAVED = re.compile(rb"Saved checkpoint .* @ (\d+) updates")
ADOPTED = "checkpoint_given.pt"


class Evaluation:
    """The results of evaluate.sh for one split: its `translations` are the output of fairseq-generate."""

    def __init__(self, path: Path):
        self.path, self.translations, self.scores_file = path, path / "generate.out", path / "scores.json"


class RunFolder:
    """A run folder. A new start continues from `last_checkpoint`. In messages it is called `shown`."""

    def __init__(self, path: Path):
        self.path = path
        self.settings_file, self.manifest_file = path / "settings.json", path / "manifest.json"
        self.finished_file, self.last_checkpoint = path / "finished", path / LAST

    # --- settings ---------------------------------------------------------------------------------------------------

    @property
    def is_bound(self) -> bool:
        """Whether the folder belongs to a training by train.sh."""
        return self.settings_file.exists()

    def settings(self) -> Settings:
        """The settings that the folder is bound to; empty if it is not bound. Another file is a UserError."""
        if not self.is_bound:
            return Settings({})
        try:
            return Settings.from_json(self.settings_file.read_text(encoding="utf-8"))
        except (ValueError, LookupError, TypeError) as error:
            raise UserError(f"{self.settings_file}: not of train.sh; name another folder") from error

    def bind(self, settings: Settings, shown: str) -> None:
        """Bind the folder to a training; raise a UserError if it belongs to another training or another program.

        A training that failed before its first checkpoint does not bind the folder.
        """
        if not self.is_bound and (self.checkpoints() or self.manifest_file.exists()):
            raise UserError(f"{shown} has checkpoints or a manifest that are not of this script; name another folder")
        before, now = self.settings().flat(), settings.flat()
        if not self.checkpoints() and not self.is_finished:
            self.manifest_file.unlink(missing_ok=True)
            self.write_settings(settings)
        elif before != now:
            # The folder may hold hours of training, so the message does not propose to delete it.
            raise UserError(f"{shown} was trained with {difference(before, now)}; name another folder")

    def write_settings(self, settings: Settings) -> None:
        write_whole(self.settings_file, settings.to_json())

    def adopt(self, checkpoint: Path, source: str, target: str) -> None:
        """Make a run folder for evaluate.sh from a trained checkpoint in another place.

        The link to the checkpoint, checkpoint_given.pt, is created last: it shows that the folder is complete.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        task = {"_name": "translation", "source_lang": source, "target_lang": target}
        self.write_settings(Settings({"task": task}, {"given": str(checkpoint.resolve())}))
        self.finish()
        (self.path / ADOPTED).symlink_to(checkpoint.resolve())

    # --- the end ----------------------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        return self.finished_file.exists()

    def finish(self) -> None:
        self.finished_file.touch()

    @property
    def last_update(self) -> int:
        """The last update that was saved according to the log; 0 if there is none. Its checkpoint may be deleted."""
        log = self.path / "train.log"
        saved = _SAVED.findall(log.read_bytes()) if log.exists() else []
        return int(saved[-1]) if saved else 0

    @property
    def resume_update(self) -> int:
        """The update from which a new start continues; 0 without checkpoint_last.pt."""
        return self.last_update if self.last_checkpoint.exists() else 0

    # --- checkpoints ------------------------------------------------------------------------------------------------

    def checkpoints(self) -> list[Path]:
        """The checkpoints that fairseq's training writes, by their names, newest first. Averages have other names."""
        names = [re.compile(r"checkpoint_(last|best)\.pt"), *KINDS.values()]
        paths = (path for path in self.path.glob("checkpoint*.pt") if any(name.fullmatch(path.name) for name in names))
        return sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True)

    def count(self, kind: str) -> int:
        """The number of checkpoints of a kind: EPOCH, UPDATE or BEST."""
        return sum(bool(KINDS[kind].fullmatch(path.name)) for path in self.checkpoints())

    def recover_last(self, shown: str) -> Path | None:
        """Replace a damaged checkpoint_last.pt by the newest intact checkpoint, and return that checkpoint.

        fairseq copies a checkpoint to checkpoint_last.pt in place. An interruption can truncate the copy. It is a
        UserError if no checkpoint is intact.
        """
        if not self.last_checkpoint.exists() or zipfile.is_zipfile(self.last_checkpoint):
            return None
        for checkpoint in self.checkpoints():
            if zipfile.is_zipfile(checkpoint):
                with open(checkpoint, "rb") as whole, replacing(self.last_checkpoint) as copy:
                    shutil.copyfileobj(whole, copy, 1 << 20)
                return checkpoint
        problem = "checkpoint_last.pt is damaged, and no other checkpoint is intact"
        raise UserError(f"{shown}/{problem}; delete {shown}, or name another folder")

    # --- the manifest -----------------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        if not self.manifest_file.exists():
            return {"starts": []}
        manifest: dict[str, Any] = json.loads(self.manifest_file.read_text(encoding="utf-8"))
        return manifest

    def note_start(self, facts: dict[str, Any]) -> None:
        """Add a start, with the update from which it continues."""
        manifest = self.manifest()
        resumed = {"resumed_after_update": self.last_update} if self.last_checkpoint.exists() else {}
        manifest["starts"].append({**facts, **resumed})
        self._write_manifest(manifest)

    def note_end(self, time: str, how: str) -> None:
        """Record how the last start ended."""
        manifest = self.manifest()
        manifest["starts"][-1]["end"] = {"time": time, "after_update": self.resume_update, "how": how}
        self._write_manifest(manifest)

    def _write_manifest(self, manifest: dict[str, Any]) -> None:
        write_whole(self.manifest_file, as_json(manifest))

    # --- evaluations ------------------------------------------------------------------------------------------------

    def evaluation(self, split: str, results: str = "evaluation") -> Evaluation:
        return Evaluation(self.path / results / split)
