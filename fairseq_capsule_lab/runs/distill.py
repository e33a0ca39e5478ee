"""Distillation: a teacher translates the training set in shards, several at a time; then the students' data."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import BinaryIO

from capsule_routing.text.folders import preparations, prepared_folder, settings_of
from fairseq_capsule_lab.manifests import fingerprint
from fairseq_capsule_lab.processes import command_line, cores, require_tools, show
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.runs.machine import child_environment, visible_gpus
from fairseq_capsule_lab.runs.teacher import check_teacher, collect
from fairseq_capsule_lab.stages import Folder, Stage
from fairseq_capsule_lab.values import checked_path

SCRIPT = "distill.sh"


@dataclass(frozen=True, kw_only=True)
class DistillationArguments:
    """The arguments of distill.sh: TEACHER, DATA and OUT, and the options of the same names."""

    teacher: Path
    data: Path
    out: str
    beam: int
    lenpen: float
    shards: int
    processes: int | None = None
    max_tokens: int
    user_dir: str | None = None


def distill(program: str, words: Sequence[str], args: DistillationArguments, dry_run: bool = False) -> None:
    """Make the data of students. `program` and `words` are what the user called, for the manifest."""
    require_tools("fairseq-generate")
    plugin = plugins.plugin("--user-dir", args.user_dir)
    gpus = visible_gpus(os.environ)
    teacher, data = (
        checked_path(what, path.resolve()) for what, path in (("TEACHER", args.teacher), ("DATA", args.data))
    )
    source, target, longest = check_teacher(str(teacher), str(data), plugin != plugins.OWN)
    command = ["fairseq-generate", str(data), "--user-dir", str(plugin), "--path", str(teacher)]
    command += ["--source-lang", source, "--target-lang", target, *_searching(args)]
    if dry_run:
        shards = Path(os.path.abspath(args.out)) / "shards"
        for shard in range(args.shards):
            _command_of_shard(shards, command, shard, gpus[shard % len(gpus)] if gpus else "")
        return

    codes = {Path(text.codes) for text in preparations(args.data, source, target) or () if text.codes}
    with Folder(args.out, SCRIPT).locked() as folder:
        folder.keep_settings(_settings(args, teacher, data, source, target))
        folder.bind()  # shards depend on the settings before any stage is finished
        shards, counted = folder.path / "shards", folder.path / "counted"
        shards.mkdir(exist_ok=True)
        if not (folder.path / "bin").exists():
            _translate(shards, command, args.shards, args.processes or len(gpus) or cores(), gpus)

        def make(unfinished: Path, log: BinaryIO) -> None:
            lines = collect(data, source, target, longest, shards, unfinished)
            counted.write_text("".join(f"{line}\n" for line in lines))

        folder.run(*map(_copy_of, sorted(codes)), Stage("bin", make))
        sys.stdout.write(counted.read_text())
        folder.run(folder.manifest(command_line(program, words), counted=counted.read_text().splitlines()))
        print(f"ready: {folder.path}/bin")


def _searching(args: DistillationArguments) -> list[str]:
    """Return the options of fairseq-generate with which the teacher translates every sentence that it can."""
    options = ["--gen-subset", "train", "--beam", str(args.beam), "--lenpen", f"{args.lenpen:g}"]
    options += ["--max-len-a", "2", "--max-len-b", "10", "--max-tokens", str(args.max_tokens)]
    options += ["--required-batch-size-multiple", "1", "--no-progress-bar", "--skip-invalid-size-inputs-valid-test"]
    return [*options, "--distributed-world-size", str(args.shards)]


def _settings(args: DistillationArguments, teacher: Path, data: Path, source: str, target: str) -> dict[str, str]:
    """Return the settings of OUT.

    It has those of DATA too, also its `script`, and its codes, so that a student reads raw text as the data was
    prepared.
    """
    prepared, pair = prepared_folder(args.data), f"{source}-{target}"
    return {
        **(settings_of(prepared) if prepared else {}),
        "teacher": fingerprint(teacher),
        "data": fingerprint(*sorted(data.glob(f"train.{pair}.*.bin"))),
        "languages": pair,
        "beam": str(args.beam),
        "lenpen": f"{args.lenpen:g}",
        "shards": str(args.shards),
        "max-tokens": str(args.max_tokens),
    }


def _copy_of(file: Path) -> Stage:
    def make(unfinished: Path, log: BinaryIO) -> None:
        shutil.copyfile(file, unfinished)

    return Stage(file.name, make)


def _translate(shards: Path, command: Sequence[str], number: int, processes: int, gpus: Sequence[str]) -> None:
    """Translate the shards that are missing, several at a time."""
    folder = Folder(str(shards))
    free: SimpleQueue[str] = SimpleQueue()  # the GPU of each process, or nothing
    for process in range(processes):
        free.put(gpus[process % len(gpus)] if gpus else "")
    children: list[subprocess.Popen[bytes]] = []
    interrupted = Event()

    def translate(shard: int, unfinished: Path, log: BinaryIO) -> None:
        gpu = free.get()
        try:
            words = _command_of_shard(shards, command, shard, gpu)
            environment = {**child_environment(gpu), "OMP_NUM_THREADS": "1"}
            with open(unfinished, "wb") as out:
                child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment)
            children.append(child)
            if interrupted.is_set():
                child.kill()
            status = child.wait()
        finally:
            free.put(gpu)
        lines = Path(log.name).read_text(errors="replace").splitlines()
        # For an empty share fairseq fails at the end: it divides by the number of sentences.
        if status and not (lines and lines[-1].startswith("ZeroDivisionError")):
            raise subprocess.CalledProcessError(status, words)
        skipped = [line for line in lines if "will be skipped" in line]
        if skipped:
            (shards / f"{shard}.out.skipped.log").write_text("".join(f"{line}\n" for line in skipped))

    stages = [Stage(f"{shard}.out", partial(translate, shard)) for shard in range(number)]
    with ThreadPoolExecutor(processes) as pool:
        try:
            list(pool.map(folder.run, stages))
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):  # an interruption ends the children; a failure waits for them
                interrupted.set()
                for child in children:
                    child.kill()
            raise


def _command_of_shard(shards: Path, command: Sequence[str], shard: int, gpu: str) -> list[str]:
    """Return the command of a shard, and show it. fairseq ignores --num-shards, so a shard is the share of a rank."""
    words = [*command, *([] if gpu else ["--cpu"]), "--distributed-rank", str(shard)]
    show(words, output=str(shards / f"{shard}.out"), gpus=gpu)
    return words
