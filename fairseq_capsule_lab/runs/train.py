"""A training: one process of fairseq for each device, whose output goes to the log of the run folder."""

import contextlib
import datetime
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from capsule_routing.errors import UserError, counted
from fairseq_capsule_lab.processes import command_line, handling, require_tools, show
from fairseq_capsule_lab.runs import machine, plugins
from fairseq_capsule_lab.runs.folder import LAST, RunFolder
from fairseq_capsule_lab.runs.long_sentences import refuse_long_validation
from fairseq_capsule_lab.runs.progress import Progress
from fairseq_capsule_lab.runs.restoring import refuse_foreign_start
from fairseq_capsule_lab.runs.training_plan import TrainingArguments, TrainingPlan, plan
from fairseq_capsule_lab.stages import Folder

SCRIPT = "train.sh"
# The lines of the log that are shown while it trains, and what they are shown as. "begin training epoch" shows that a
# training computes updates: the figures of the first ones come much later.
SHOWN = (
    (re.compile(rb"\[[^]]*\]\[fairseq\.trainer\]\[INFO\] - (?=begin training epoch)"), b"  "),
    (re.compile(rb"\[[^]]*\]\[(?:train_inner|valid[0-9]*|fairseq_capsule[^]]*)\]\[INFO\] - "), b"  "),
    (re.compile(rb"\[[^]]*\]\[[^]]*\]\[INFO\] - (?=Loaded checkpoint)"), b"  "),
    (re.compile(rb"\[[^]]*\]\[[^]]*\]\[WARNING\] - "), b"  warning: "),
)
_ERROR = re.compile(r"(?:\[rank[0-9]+\]: )?((?:\w+\.)+[A-Z]\w*|[A-Z]\w*(?:Error|Exception))(: .+)")
_LOADED = re.compile(r"Loaded checkpoint (\S+) \(epoch ([0-9]+) @ ([0-9]+) updates\)")
_CONSEQUENCE = re.compile(r"torch\.distributed|Connection (reset|closed) by peer")
_KILLED = re.compile(r" *traceback : Signal ([0-9]+) \(SIG\w+\) received by PID .*")  # of torchrun
_HINTS = ("To append to your config", "Either remove + prefix")  # of Hydra, after its error
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_STOPPED = "stopped by a signal after update"  # of the task; another node may have received the signal
_PERIOD = 0.2  # seconds between two looks at the log


def train(program: str, words: Sequence[str], args: TrainingArguments, dry_run: bool = False) -> int:
    """Train, or continue a training, and print its progress. `program` and `words` are what the user called.

    Returns:
        0, or 75 if a signal ended the training: the same command goes on.
    """
    require_tools("fairseq-hydra-train", "torchrun")
    planned = plan(args, os.environ, dry_run)
    gpus = ",".join(planned.machines.gpus)
    folder = Folder(args.out, SCRIPT)
    if dry_run:
        show([*planned.command, *(planned.resuming if (folder.path / LAST).exists() else [])], gpus=gpus)
        return 0
    refuse_foreign_start(planned.settings, planned.data, folder.path)
    refuse_long_validation(planned.settings, planned.data)
    environment = machine.child_environment(gpus)
    count = len(planned.machines.gpus)
    test = f"import sys, torch; sys.exit(torch.cuda.device_count() < {count})"
    if count and subprocess.run([sys.executable, "-c", test], env=environment).returncode:
        raise UserError(f"--gpus {count}: torch does not see them; 'fairseq-capsule doctor' shows why")
    folder.path.mkdir(parents=True, exist_ok=True)
    # Nodes but the first one do not lock the folder: they write only their own logs.
    with folder.locked() if planned.machines.node == 0 else contextlib.nullcontext():
        training = Training(program, folder, planned)
        if training.begin(command_line(program, words)):
            return training.end(training.supervise(environment))
    return 0


class Training:
    """One start of a training in a run folder."""

    def __init__(self, program: str, folder: Folder, planned: TrainingPlan):
        self.program, self.folder, self.plan = program, folder, planned
        self.run = RunFolder(folder.path)
        self.node = planned.machines.node
        self.log = folder.path / ("train.log" if self.node == 0 else f"train.node{self.node}.log")
        self.first = self.log.stat().st_size if self.log.exists() else 0  # where the output of this start begins
        self.child: subprocess.Popen[bytes] | None = None
        self.interrupted = False
        self.progress = Progress(planned.max_update, planned.max_epoch, planned.warmup)

    def begin(self, command: str) -> bool:
        """Bind the folder and record the start. Return False if the training is finished."""
        if self.node == 0:
            self.run.bind(self.plan.settings, self.folder.out)
            intact = self.run.recover_last(self.folder.out)
            if intact:
                print(f"checkpoint_last.pt was truncated by an interruption: continuing from {intact.name}")
        # If all updates are saved and it started again, fairseq would make one more update.
        if self.run.is_finished or 0 < self.plan.max_update <= self.run.resume_update:
            if self.node == 0 and not self.run.is_finished:
                self.run.finish()
            print(f"{self.folder.out}: finished, nothing to do")
            return False
        if self.node == 0:
            facts = {"start": _now(), "command": command, **machine.facts(plugins.OWN), "processes": self.plan.where}
            facts |= {"batch": self.plan.batch, "data": str(self.plan.data), "seed": self.plan.seed}
            self.run.note_start(facts)
        line = f"{self.program}: {self.plan.where}; effective batch: {self.plan.batch}"
        print(f"{line}\nlog: {self.log}; loading data and model", flush=True)
        with open(self.log, "a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")
        if self.plan.settings.get("ema.store_ema"):
            print("ema.store_ema: nothing reads these averages; 'fairseq-capsule average' averages checkpoints")
        return True

    def supervise(self, environment: Mapping[str, str]) -> int:
        """Run the command and show the important lines of its log. Return its status.

        A signal lets it save after its next update and end, a second one ends it at once.
        """
        command = [*self.plan.command, *(self.plan.resuming if self.run.last_checkpoint.exists() else [])]
        show(command, gpus=",".join(self.plan.machines.gpus))
        with handling(_SIGNALS, self._interrupt):
            with open(self.log, "ab") as stream:
                # The child inherits the lock: if this process is killed, the folder stays locked until the training
                # ends. It stays in the caller's folder, because paths in the settings are relative to it.
                self.child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    env={**environment, "HYDRA_FULL_ERROR": "1", "PYTHONWARNINGS": "ignore"},
                    pass_fds=[self.folder.descriptor] if self.folder.descriptor >= 0 else [],
                    process_group=0,  # signals of the terminal and of Slurm end it through this process alone
                )
            if self.interrupted:
                self.child.terminate()
            with open(self.log, "rb") as log:
                log.seek(self.first)
                rest = b""
                while True:
                    ended = self.child.poll() is not None  # an interrupted training may take long to end
                    *lines, rest = (rest + log.read()).split(b"\n")
                    with contextlib.suppress(OSError):  # the reader of our output may end
                        _show(lines, self.progress)
                    if ended:
                        return self.child.returncode
                    time.sleep(_PERIOD)

    def _interrupt(self, number: int, frame: Any) -> None:
        first, self.interrupted = not self.interrupted, True
        if self.child is None:
            return
        workers = children(self.child.pid) if self.plan.machines.launcher else [self.child.pid]
        if not first or not workers:
            self.child.terminate()
        for process in workers if first else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGUSR1)  # torchrun itself would end them after 30 seconds

    def end(self, status: int) -> int:
        """Record how this start ended, and return the status: 0, or 75 after a signal.

        Raises:
            UserError: it failed.
        """
        finished = any("done training in" in line for line in self._lines())
        if not finished and (self.interrupted or any(_STOPPED in line for line in self._lines())):
            self._note("interrupted")
            advice = f"the same command resumes from update {self.run.resume_update}"
            print(f"{self.program}: interrupted (full log: {self.log}); {advice}", file=sys.stderr)
            return os.EX_TEMPFAIL
        if self.node != 0:
            if status:
                raise self._failure(self._reason(status), "see the first node")
            return 0
        # fairseq's status is unreliable: it may be 0 after an error.
        if not finished or not self.run.last_checkpoint.exists():
            loaded = next(filter(None, map(_LOADED.search, self._lines())), None)
            if loaded and finished:
                epochs, updates = counted(int(loaded[2]) - 1, "epoch"), counted(int(loaded[3]), "update")
                reason = f"{loaded[1]} has {epochs} and {updates}"
                advice = (
                    f"optimization.max_epoch or max_update above that, or checkpoint.finetune_from_model={loaded[1]}"
                )
                raise self._failure(f"nothing to train: {reason}", f"give {advice}")
            raise self._failure(self._reason(status), "fix the cause and run the same command again")
        self.run.note_end(_now(), "finished")
        self.run.finish()
        print(f"ready: {self.folder.path}, {counted(self.run.resume_update, 'update')}")
        return 0

    def _lines(self) -> Iterator[str]:
        """Yield the lines that this start added to the log."""
        with open(self.log, "rb") as stream:
            stream.seek(self.first)
            for line in stream:
                yield line.decode(errors="replace").rstrip("\n")

    def _reason(self, status: int) -> str:
        """Return the error that ended this start, not its consequences in other processes."""
        if not self.folder.has_room():
            return "No space left on device"
        reason = last = lost = ""
        for last in self._lines():
            error, killed = _ERROR.fullmatch(last), _KILLED.fullmatch(last)
            if killed:
                status = -int(killed[1])
            elif error and _CONSEQUENCE.search(last):
                lost = "the connection to another process was lost, which failed or was killed"
            elif error:
                reason = error[1].rpartition(".")[2] + error[2]
            elif last.startswith(_HINTS):
                reason += f" {last}"
        if not reason and status < 0:
            reason = f"killed by signal {-status}, perhaps because memory ran out"
        return as_settings(reason or lost or last)

    def _note(self, reason: str) -> None:
        if self.node == 0:
            for rest in self.folder.path.glob("checkpoint*.tmp"):  # not completely written
                rest.unlink(missing_ok=True)
            with contextlib.suppress(UserError):  # the disk is full
                self.run.note_end(_now(), reason)

    def _failure(self, reason: str, advice: str) -> UserError:
        self._note(reason)
        return UserError(f"{reason} (full log: {self.log}); {advice}")


def children(process: int) -> list[int]:
    """Return the processes that a process started."""
    files = Path("/proc").glob(f"{process}/task/*/children")
    return [int(number) for file in files for number in file.read_text().split()]


def as_settings(advice: str) -> str:
    """Return an advice of fairseq with its options as train.sh takes them: `--max-tokens` as `dataset.max_tokens`."""
    from fairseq.dataclass.configs import FairseqConfig

    groups = vars(FairseqConfig())

    def setting(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        for group, values in groups.items():
            option = getattr(values, "__dataclass_fields__", {}).get(name)
            if option:
                return f"{group}.{name}" + ("=true" if option.default is False else "")
        return match[0]

    return re.sub(r"(?<!\S)--([a-z][a-z0-9-]*[a-z0-9])", setting, advice)


def _show(lines: Sequence[bytes], progress: Progress) -> None:
    for line in lines:
        remark = progress.remark(line).encode()
        shown = [mark + line[match.end() :] for pattern, mark in SHOWN if (match := pattern.match(line))]
        if shown or remark:
            sys.stdout.buffer.write(b"".join(shown) + remark + b"\n")
    sys.stdout.buffer.flush()


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
