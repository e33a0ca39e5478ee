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
    lenpen, number = f"{args.lenpen:g}", args.shards
    pair = f"{source}-{target}"
    command = ["fairseq-generate", str(data), "--user-dir", str(plugin), "--path", str(teacher)]
    command += ["--source-lang", source, "--target-lang", target, "--gen-subset", "train"]
    command += ["--beam", str(args.beam), "--lenpen", lenpen, "--max-len-a", "2", "--max-len-b", "10"]
    command += ["--max-tokens", str(args.max_tokens), "--required-batch-size-multiple", "1", "--no-progress-bar"]
    command += ["--skip-invalid-size-inputs-valid-test", "--distributed-world-size", str(number)]
    if dry_run:
        shards = Path(os.path.abspath(args.out)) / "shards"
        for shard in range(number):
            _command_of_shard(shards, command, shard, gpus[shard % len(gpus)] if gpus else "")
        return

    # OUT has the settings and codes of DATA too, so that a student reads raw text as the data was prepared. Of the two
    # lines `script`, the last one counts: that of DATA.
    prepared = prepared_folder(args.data)
    of_text = settings_of(prepared) if prepared else {}
    codes = {Path(text.codes) for text in preparations(args.data, source, target) or () if text.codes}
    with Folder(args.out, SCRIPT).locked() as folder:
        hashes = fingerprint(teacher), fingerprint(*sorted(data.glob(f"train.{pair}.*.bin")))
        settings = {**of_text, "teacher": hashes[0], "data": hashes[1], "languages": pair, "beam": args.beam}
        settings |= {"lenpen": lenpen, "shards": number, "max-tokens": args.max_tokens}
        folder.keep_settings(f"{key} {value}" for key, value in settings.items())
        folder.bind()  # shards depend on the settings before any stage is finished
        shards, counted = folder.path / "shards", folder.path / "counted"
        shards.mkdir(exist_ok=True)
        if not (folder.path / "bin").exists():
            _translate(shards, command, number, args.processes or len(gpus) or cores(), gpus)

        def make(part: Path, log: BinaryIO) -> None:
            lines = collect(data, source, target, longest, shards, part)
            counted.write_text("".join(f"{line}\n" for line in lines))

        folder.run(*map(_copy_of, sorted(codes)), Stage("bin", make))
        sys.stdout.write(counted.read_text())
        lines = (f"counted\t{line}" for line in counted.read_text().splitlines())
        folder.run(folder.manifest(command_line(program, words), lines))
        print(f"ready: {folder.path}/bin")


def _copy_of(file: Path) -> Stage:
    def make(part: Path, log: BinaryIO) -> None:
        shutil.copyfile(file, part)

    return Stage(file.name, make)


def _translate(shards: Path, command: Sequence[str], number: int, processes: int, gpus: Sequence[str]) -> None:
    """Translate the shards that are missing, several at a time."""
    folder = Folder(str(shards))
    free: SimpleQueue[str] = SimpleQueue()  # the GPU of each process, or nothing
    for process in range(processes):
        free.put(gpus[process % len(gpus)] if gpus else "")
    children: list[subprocess.Popen[bytes]] = []
    interrupted = Event()

    def translate(shard: int, part: Path, log: BinaryIO) -> None:
        gpu = free.get()
        try:
            words = _command_of_shard(shards, command, shard, gpu)
            environment = {**child_environment(gpu), "OMP_NUM_THREADS": "1"}
            with open(part, "wb") as out:
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
