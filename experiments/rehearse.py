"""Rehearse WMT14 English-German on a CPU, with synthetic text: prepare it, train, average, translate, make a table.

    python experiments/rehearse.py --pairs 4500000 OUT          # a Base model; hours
    python experiments/rehearse.py --pairs 2000 --small OUT     # a small model; some minutes

Archives with WMT14's names and layout go through `prepare-wmt14-en-de.sh`. The capsule-Transformer of Duan et al. is
trained with the paper's batch by `train-gpus.sh` and by `train.sh`, in two processes, and by `reproduce.sh` for one
row. Each of these commands is killed on its way, with all its processes, and then given again. OUT/report.md has the
time, the CPU time and the memory of each stage, the disk, and what the preparation recorded.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from capsule_routing.errors import UserError  # noqa: E402
from experiments.synthetic_text import write_archives  # noqa: E402

STAGES = ("raw", "tokenised", "clean", "codes", "bpe", "bin", "dict.txt", "manifest.json")
CONFIG = ROOT / "configs/papers/duan.yaml"
SIDES = [f"model.{side}_{size}" for side in ("encoder", "decoder") for size in ("embed_dim=32", "ffn_embed_dim=64")]
SMALL = [*SIDES, "model.encoder_layers=2", "model.decoder_layers=2", "dataset.max_tokens=1024", "dataset.num_workers=0"]
# A row with the paper's batch, decoding and average of five checkpoints; and one of a small model without them.
TABLE = """title: A row of Table 1, rehearsed
paper: duan
columns:
  BLEU: {corpus: wmt14-en-de, measure: bleu}
rows:
  capsule-Transformer:
    run: capsule_transformer optimization.max_update=5 checkpoint.save_interval_updates=1 lr_scheduler.warmup_updates=4
"""
SMALL_TABLE = """title: A small row, rehearsed
columns:
  parameters: {corpus: wmt14-en-de, measure: parameters}
rows:
  capsule-Transformer:
    run: capsule_transformer model._name=capsule_transformer_tiny optimization.max_update=4 optimization.update_freq=[1]
      dataset.max_tokens=1024 checkpoint.save_interval_updates=2 ++dataset.num_workers=0
"""


class Row(NamedTuple):
    """A stage: its seconds, those of CPU time, the most memory of all its processes together in MiB, what was done."""

    stage: str
    seconds: float
    cpu: float
    memory: int
    note: str = ""

    @property
    def line(self) -> str:
        """It as a line of a table in Markdown."""
        return f"| {self.stage} | {self.seconds / 60:.1f} | {self.cpu / 60:.1f} | {self.memory} | {self.note} |"


class Rehearsal:
    """Commands that run one after another, with their rows."""

    def __init__(self, out: Path, pause: float):
        self.out, self.pause, self.rows = out, pause, []  # type: Path, float, List[Row]

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(row.line, flush=True)

    def run(
        self, stage: str, words: Sequence[object], marks: Sequence[Path] = (), kill: Optional[Callable[[], bool]] = None
    ) -> None:
        """Run a command; a row ends when one of the files `marks` appears. It is killed when `kill` says so.

        Raises:
            UserError: it failed, or ended before it was to be killed.
        """
        log = self.out / "log" / f"{len(self.rows):02d}-{stage.split()[0].replace('/', '-')}.log"
        log.parent.mkdir(exist_ok=True)
        path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"  # without an active environment too
        # No checksum is known of synthetic archives.
        environment = {**os.environ, "PATH": path, "CAPSULE_CHECKSUMS": os.devnull, "CUDA_VISIBLE_DEVICES": ""}
        waiting = [mark for mark in marks if not mark.exists()]
        with log.open("wb") as stream:
            process = subprocess.Popen(
                list(map(str, words)), cwd=ROOT, env=environment, stdout=stream, stderr=subprocess.STDOUT
            )
        start, before, cpu, memory, killed = time.monotonic(), 0.0, 0.0, 0, False
        while process.poll() is None:
            family = processes_below(process.pid)
            memory = max(memory, sum(resident(pid) for pid in family) >> 20)
            cpu = max(cpu, sum(cpu_seconds(pid) for pid in family))  # an orphan takes its share away with it
            if kill is not None and kill():
                killed = True
                for pid in family:  # torchrun's workers are in groups of their own
                    end(pid)
                process.wait()
                break
            if waiting and waiting[0].exists():
                self.add(Row(f"{stage}: {waiting.pop(0).name}", time.monotonic() - start, cpu - before, memory))
                start, before, memory = time.monotonic(), cpu, 0
            time.sleep(self.pause)
        if waiting or not marks:
            name = f"{stage}: {waiting[0].name}" if waiting else stage
            note = "killed, then given again" if killed else ""
            self.add(Row(name, time.monotonic() - start, cpu - before, memory, note))
        if kill is not None and not killed:
            raise UserError(f"{log}: ended before it was killed; see there")
        if process.returncode and not killed:
            raise UserError(f"{log}: exit status {process.returncode}: {last_line(log)}")

    def run_twice(
        self, stage: str, words: Sequence[object], kill: Callable[[], bool], marks: Sequence[Path] = ()
    ) -> None:
        """Run a command that is killed on its way, and run it again to its end."""
        self.run(stage, words, marks, kill)
        self.run(stage, words, marks)


def processes_below(pid: int) -> List[int]:
    """A process and all that it started, directly or not."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    family = [pid]
    for parent in family:
        family += children.get(parent, [])
    return family


def resident(pid: int) -> int:
    """The bytes of a process in memory; of pages that it shares with others its part. 0 if it has ended."""
    try:
        fields = dict(line.split()[:2] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields["Pss:"]) << 10


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and of those of its children that have ended; 0 if it has ended itself."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def end(pid: int) -> None:
    """Kill a process that has perhaps ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def last_line(path: Path) -> str:
    return (path.read_text(encoding="utf-8", errors="replace").splitlines() or ["nothing printed"])[-1]


def has_saved(folder: Path, update: int) -> bool:
    """Whether a training below a folder has saved all checkpoints of an update, or of a later one."""
    for path in folder.rglob("checkpoint_[0-9]*_[0-9]*.pt"):
        last = path.with_name("checkpoint_last.pt")  # fairseq copies it after it
        if int(path.stem.split("_")[2]) >= update and last.exists():
            ours, theirs = path.stat(), last.stat()
            if ours.st_size == theirs.st_size and ours.st_mtime <= theirs.st_mtime:
                return True
    return False


def size(path: Path) -> float:
    """The MB of a file, or of all files of a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink()) / 1e6


def rehearse(args: argparse.Namespace) -> None:
    out = args.out.absolute()
    if out.exists():
        raise UserError(f"{out} exists: delete it, or name another folder")
    # To look at the memory of large processes takes tenths of a second of CPU time; small stages end soon.
    rehearsal = Rehearsal(out, 0.05 if args.pairs < 100_000 else 2)
    data, runs = out / "data/wmt14-en-de", out / "runs"
    run, run_twice = rehearsal.run, rehearsal.run_twice
    tokens, step = (2048, 1024) if args.small else (49152, 2048)  # of an update and of a process
    decoding = ["--beam", 1] if args.small else ["--beam", 4, "--lenpen", 0.6]
    start, before = time.monotonic(), time.process_time()
    held_out = max(20, min(3000, args.pairs // 100))
    write_archives(out / "archives", args.pairs, held_out, max(5, held_out // 10))
    rehearsal.add(Row("archives of synthetic text", time.monotonic() - start, time.process_time() - before, 0))

    words = [ROOT / "scripts/prepare-wmt14-en-de.sh", "--from", out / "archives", data]
    marks = [data / stage for stage in STAGES]
    run_twice("prepare-wmt14-en-de.sh", words, lambda: any(data.glob("bpe.part*/train.en")), marks)
    run("check-data", ["fairseq-capsule", "check-data", data])

    def settings(updates: int) -> List[str]:
        every = max(1, updates // 2)  # a validation follows each checkpoint
        words = [f"checkpoint.save_interval_updates={every}", f"optimization.max_update={updates}"]
        return [*words, "lr_scheduler.warmup_updates=4", *(SMALL if args.small else [])]

    words = [ROOT / "scripts/train-gpus.sh", "--cpu", 2, "--update-freq", tokens // step // 2]
    words += [CONFIG, data / "bin", runs / "gpus", *settings(args.updates)]
    run_twice("train-gpus.sh", words, partial(has_saved, runs / "gpus", args.updates // 2))
    run("generate.sh", [ROOT / "scripts/generate.sh", "--last-updates", 2, *decoding, runs / "gpus", data, "en", "de"])
    half = max(2, args.updates // 2)
    words = [ROOT / "scripts/train.sh", "--gpus", 0, "--processes", 2, "--effective-tokens", tokens]
    words += [CONFIG, data / "bin", runs / "train", *settings(half)]
    run_twice("train.sh", words, partial(has_saved, runs / "train", half // 2))
    table = out / "row.yaml"
    table.write_text(SMALL_TABLE if args.small else TABLE, encoding="utf-8")
    words = [ROOT / "scripts/reproduce.sh", table, "--data", out / "data", "--runs", runs]
    run_twice("reproduce.sh", words, partial(has_saved, runs / "paper", 2))
    report = report_of(rehearsal.rows, data, out)
    (out / "report.md").write_text(report, encoding="utf-8")
    print(report)


def report_of(rows: Sequence[Row], data: Path, out: Path) -> str:
    """The tables of a rehearsal, in Markdown."""
    lines = ["| stage | minutes | of CPU | memory, MiB | |", "|---|---|---|---|---|"]
    lines += [row.line for row in rows]
    lines += ["", "| folder | MB |", "|---|---|"]
    folders = [out / "archives", *(data / stage for stage in STAGES), *sorted((out / "runs").iterdir())]
    lines += [f"| `{folder.relative_to(out)}` | {size(folder):,.1f} |" for folder in folders]
    manifest = (data / "manifest.json").read_text(encoding="utf-8").splitlines()
    return "\n".join([*lines, "", *(f"    {line}" for line in manifest), ""])


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=4_500_000, help="training pairs (4,500,000)")
    parser.add_argument(
        "--updates", type=int, default=10, help="of train-gpus.sh (10); train.sh makes half of them, the row five"
    )
    parser.add_argument("--small", action="store_true", help="a small model in place of Base")
    parser.add_argument("out", type=Path, help="the folder to make")
    try:
        rehearse(parser.parse_args(argv))
    except UserError as error:
        print(f"rehearse.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
