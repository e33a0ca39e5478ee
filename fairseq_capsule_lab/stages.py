"""A folder that is made by stages, each of which survives an interruption.

A stage makes one file or folder under a temporary name, which gets its final name when it is complete. So a name that
exists is finished, and the same command resumes where it stopped. `settings.json` has each setting that the content
depends on; a folder that was made with other settings is refused. A folder of texts has files named SPLIT.LANG.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from capsule_routing.errors import UserError, one_line
from capsule_routing.text.folders import SETTINGS, settings_of
from fairseq_capsule_lab.files import as_json
from fairseq_capsule_lab.manifests import DIGITS, MANIFEST, counts, manifest_of
from fairseq_capsule_lab.processes import handling

FREE = 1 << 20  # bytes; with less, a disk counts as full


class Stage(NamedTuple):
    """One step.

    `make` is called with the temporary path to make, and a log for the output of commands. After `CalledProcessError`
    the last line of the log is the reason. A command may also make its complete output under its own name.
    """

    output: str  # the name of the file or folder that it makes
    make: Callable[[Path, BinaryIO], object]
    needs: Sequence[str] = ()  # names of what must exist
    log: str = ""  # the name of a log that is kept; others are removed with the end of the stage


class Folder:
    """A folder `out`, as the user named it, in which a script works; its settings, if it has any, name the script."""

    def __init__(self, out: str, script: str = ""):
        self.out, self.path, self.script = out, Path(os.path.abspath(out)), script
        # The settings that bind it, and their name until the first stage is finished.
        self.settings_file, self._unbound = self.path / SETTINGS, self.path / f"{SETTINGS}.part"
        self.stages: list[str] = []
        self.descriptor = -1  # holds the lock

    @contextlib.contextmanager
    def locked(self) -> Iterator["Folder"]:
        """Make the folder if it is missing, and lock it. A second program waits for the first one.

        Processes that inherit `descriptor` keep the lock, so a folder stays locked until the last of them has ended.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"waiting for another run in {self.out}", flush=True)
                fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            with handling((signal.SIGHUP, signal.SIGTERM), _end):
                yield self
        finally:
            os.close(self.descriptor)

    def keep_settings(self, settings: Mapping[str, str]) -> None:
        """Refuse a folder that was made with other settings. The first finished stage binds it to these."""
        now = {"script": self.script, **settings}
        if not self.settings_file.exists():
            self._unbound.write_bytes(as_json(now))
            return
        before = settings_of(self.path)
        if not before:
            raise UserError(f"{self.settings_file}: not of this script: name another folder")
        if before != now:
            other = difference(before, now)
            raise UserError(f"{self.out} was prepared with {other}: delete it, or name another folder")

    def bind(self) -> None:
        """Bind the folder to its settings."""
        if self.script and not self.settings_file.exists():
            self._unbound.rename(self.settings_file)

    def run(self, *stages: Stage, keep_going: bool = False) -> list[Stage]:
        """Run the stages that are not finished. If one fails, a UserError says why in one line.

        With `keep_going` the line is printed, and the stages run that do not need what is missing. Those that failed or
        were left out are returned.
        """
        failed = []
        for stage in stages:
            missing = next((name for name in stage.needs if not (self.path / name).exists()), None)
            try:
                if missing:
                    raise UserError(f"{stage.output}: left out, since {missing} is missing")
                self._run(stage)
            except UserError as error:
                if not keep_going:
                    raise
                print(error, file=sys.stderr, flush=True)
                failed.append(stage)
        return failed

    def _run(self, stage: Stage) -> None:
        final = self.path / stage.output
        self.stages.append(stage.output)
        if final.exists():
            if self.script and not self.settings_file.exists():
                raise UserError(f"{final} exists, but was not made by this script: name another folder")
            _say(f"{stage.output}: done before")
            return
        # What an interrupted run left. Processes of it that still run hold no lock and write only there.
        for rest in final.parent.glob(f"{final.name}.part.*"):
            remove(rest)
        unfinished = final.with_name(f"{final.name}.part.{os.getpid()}")
        log = self.path / (stage.log or f"{stage.output}.log")
        try:
            for file in (unfinished, log):
                file.parent.mkdir(parents=True, exist_ok=True)
            with open(log, "wb") as stream:
                stage.make(unfinished, stream)
            self.bind()
            if unfinished.exists() or not final.exists():
                unfinished.rename(final)
        except Exception as error:  # a library may raise anything
            is_full = not self.has_room()  # asked before the removal of what is incomplete
            if not isinstance(error, (UserError, OSError, subprocess.CalledProcessError)):
                with contextlib.suppress(OSError), open(log, "a") as stream:  # a full disk is not the first error
                    traceback.print_exc(file=stream)
            for rest in unfinished.parent.glob(f"{unfinished.name}*"):
                remove(rest)
            if isinstance(error, UserError) and not is_full:
                raise
            reason = "No space left on device" if is_full else _reason(error, log)
            advice = "fix the cause and run the same command again"
            raise UserError(f"stage '{stage.output}' failed: {reason} (full log: {log}); {advice}") from error
        if stage.log:
            _say(f"{stage.output}: done")
            return
        log.unlink()
        _say(f"{stage.output}: {counts(final)}")

    def has_room(self) -> bool:
        """Return whether the disk has a free megabyte."""
        disk = os.statvfs(self.path)
        return disk.f_bavail * disk.f_frsize >= FREE

    def manifest(self, command_line: str, **further: Any) -> Stage:
        """Return the last stage: the manifest, with the entries `further`."""

        def make(unfinished: Path, log: BinaryIO) -> None:
            unfinished.write_bytes(as_json({**manifest_of(self.path, self.stages[:-1], command_line), **further}))

        return Stage(MANIFEST, make)


def _reason(error: Exception, log: Path) -> str:
    if not isinstance(error, subprocess.CalledProcessError):
        return one_line(str(error)) or type(error).__name__
    said = log.read_bytes().splitlines() if log.exists() else []
    return said[-1].decode(errors="replace") if said else "no reason given"


def _say(text: str) -> None:
    """Print a line in one piece: stages may run in several threads."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _end(number: int, frame: object) -> None:
    """End this program by SystemExit, so that its children are ended too."""
    raise SystemExit(128 + number)


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The settings in which two runs differ. A hash means nothing to the user."""
    older = [(key, value) for key, value in before.items() if now.get(key) != value]
    newer = [(key, value) for key, value in now.items() if before.get(key) != value and not _is_hash(value)]
    said = ",".join(_without_hash(key, value) for key, value in older) or "other settings"
    return f"{said}, not {','.join(f'{key} {value}' for key, value in newer)}" if newer else said


def _is_hash(value: str) -> bool:
    """Whether a setting is the hash of a file, or of several."""
    return bool(re.fullmatch(rf"[0-9a-f]{{{DIGITS}}}( [0-9a-f]{{{DIGITS}}})*", value))


def _without_hash(key: str, value: str) -> str:
    """Return `other KEY` for a setting that is a hash, and others with their values."""
    if not _is_hash(value):
        return f"{key} {value}"
    return f"other {key} text" if key in ("train", "valid", "test") else f"other {key}"


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as it is possible."""
    with contextlib.suppress(OSError):
        path.unlink()
        return
    shutil.rmtree(path, ignore_errors=True)
