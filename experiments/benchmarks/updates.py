"""Train the embedded corpus with fairseq-hydra-train in each precision and in two processes, and resume each training.

    python experiments/benchmarks/updates.py --data data/toy/bin --work /tmp/updates --out updates.csv

All trainings run at the same time, from the same seed, with the model of configs/toy/combined.yaml: all mechanisms and
losses. Each one saves its state halfway. A second process resumes it from there. `updates.csv` says of each training
whether its losses are finite, how they differ from float32's, the loss scale, and how the losses and parameters of the
resumed training differ from those of the first one. `float32-again` is the same training twice: its difference comes
from the GPU alone. `losses.csv` has the loss of each update. The two processes share the GPU and use gloo. Each has its
own batches of half the size, so their losses are not float32's.
"""

import argparse
import csv
import json
import math
import re
import socket
import subprocess
from pathlib import Path
from typing import Dict, List

from rows import write_rows

REPOSITORY = Path(__file__).parents[2]
TWO = "two-processes"
WAYS: Dict[str, List[str]] = {
    "float32": [],
    "float32-again": [],
    "fp16": ["common.fp16=true"],
    "bf16": ["common.bf16=true"],
    "amp": ["common.amp=true"],
    TWO: [],
}
COLUMNS = """way updates finite first_loss last_loss largest_difference_from_float32
    first_loss_scale lowest_loss_scale last_loss_scale
    resumed_loss_difference resumed_parameter_difference error""".split()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(way: str, folder: Path, args, *further: str) -> List[subprocess.Popen]:
    """Start a training, one process or two. Its log is `folder/log0`, that of the second process `folder/log1`."""
    folder.mkdir(parents=True)
    command = [
        "fairseq-hydra-train",
        f"--config-dir={REPOSITORY / 'configs/toy'}",
        "--config-name=combined",
        f"common.user_dir={REPOSITORY / 'fairseq_capsule'}",
        "common.log_format=json",
        "common.log_interval=1",
        f"task.data={args.data.resolve()}",
        f"dataset.max_tokens={512 if way == TWO else 1024}",
        "dataset.disable_validation=true",
        "lr_scheduler.warmup_updates=100",
        f"optimization.max_update={args.updates}",
        f"checkpoint.save_dir={folder}",
        f"checkpoint.save_interval_updates={args.updates // 2}",
        "checkpoint.no_epoch_checkpoints=true",
        *WAYS[way],
        *further,
    ]
    if args.device == "cpu":
        command.append("common.cpu=true")
    if way == TWO:
        command += [
            "distributed_training.distributed_world_size=2",
            "distributed_training.distributed_no_spawn=true",
            "distributed_training.distributed_backend=gloo",
            f"distributed_training.distributed_init_method='tcp://127.0.0.1:{free_port()}'",
            "distributed_training.ddp_backend=legacy_ddp",
            "distributed_training.device_id=0",
        ]
    processes = []
    for rank in range(2 if way == TWO else 1):
        of_rank = [f"distributed_training.distributed_rank={rank}"] if way == TWO else []
        with (folder / f"log{rank}").open("w") as log:
            processes.append(subprocess.Popen([*command, *of_rank], stdout=log, stderr=subprocess.STDOUT))
    return processes


def log_of(folder: Path) -> List[Dict[str, str]]:
    """Return what fairseq logged of each update."""
    text = (folder / "log0").read_text(encoding="utf-8")
    return [json.loads(line) for line in re.findall(r"\[train_inner\]\[INFO\] - (\{.*\})", text)]


def parameter_difference(first: Path, second: Path) -> float:
    """Return the largest difference of a parameter of two checkpoints."""
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    import fairseq_capsule.tasks  # noqa: F401  lets torch read fairseq's checkpoints

    one, other = (load_checkpoint_to_cpu(str(folder / "checkpoint_last.pt"))["model"] for folder in (first, second))
    return max((one[name].float() - other[name].float()).abs().max().item() for name in one if one[name].numel())


def losses_of(folder: Path) -> Dict[int, float]:
    """Return the loss of each update."""
    return {int(line["num_updates"]): float(line["loss"]) for line in log_of(folder)}


def largest_difference(first: Dict[int, float], second: Dict[int, float]) -> float:
    """Return the largest difference of the losses of the same update."""
    return max((abs(first[update] - second[update]) for update in first.keys() & second.keys()), default=math.nan)


def train_all(args) -> None:
    """Train in each way, all at the same time."""
    started = [process for way in args.ways for process in start(way, args.work / way, args)]
    for process in started:
        process.wait()


def resume_all(args) -> None:
    """Resume each training that saved its state halfway, all at the same time."""
    started = []
    for way in args.ways:
        for halfway in (args.work / way).glob(f"checkpoint_*_{args.updates // 2}.pt"):
            started += start(way, args.work / f"{way}-resumed", args, f"checkpoint.restore_file={halfway}")
    for process in started:
        process.wait()


def row_of(way: str, logs: Dict[str, Dict[int, float]], args) -> Dict[str, object]:
    folder, resumed = args.work / way, args.work / f"{way}-resumed"
    losses = logs[way]
    row: Dict[str, object] = {"way": way, "updates": len(losses)}
    if len(losses) < args.updates:
        row["error"] = (folder / "log0").read_text(encoding="utf-8").strip().splitlines()[-1][-200:]
    if not losses:
        return row
    finite = all(math.isfinite(loss) for loss in losses.values())
    row.update(finite=finite, first_loss=losses[min(losses)], last_loss=losses[max(losses)])
    if "float32" in logs:
        row["largest_difference_from_float32"] = largest_difference(losses, logs["float32"])
    scales = [float(line["loss_scale"]) for line in log_of(folder) if "loss_scale" in line]
    if scales:
        row.update(first_loss_scale=scales[0], lowest_loss_scale=min(scales), last_loss_scale=scales[-1])
    if (resumed / "checkpoint_last.pt").exists():
        row["resumed_loss_difference"] = largest_difference(losses, losses_of(resumed))
        row["resumed_parameter_difference"] = parameter_difference(folder, resumed)
    return row


def print_rows(rows: List[Dict[str, object]]) -> None:
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the binarised corpus of scripts/prepare-toy.sh")
    parser.add_argument("--work", type=Path, required=True, help="a folder for the trainings")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a CSV file of the trainings")
    parser.add_argument("--losses", type=Path, required=True, metavar="FILE", help="a CSV file of their losses")
    args = parser.parse_args()
    train_all(args)
    logs = {way: losses_of(args.work / way) for way in args.ways}
    with args.losses.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["update", *logs])
        for update in range(1, args.updates + 1):
            writer.writerow([update, *(losses.get(update, "") for losses in logs.values())])
    print_rows([row_of(way, logs, args) for way in args.ways])
    resume_all(args)
    rows = [row_of(way, logs, args) for way in args.ways]
    write_rows(args.out, rows, COLUMNS)
    print_rows(rows)


if __name__ == "__main__":
    main()
