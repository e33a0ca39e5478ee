"""Compare the training of an earlier build with that of this one: CPU time and memory of a step, in many cases.

    git worktree add /tmp/before COMMIT
    python experiments/benchmarks/builds.py --before /tmp/before --out builds.csv

A case is a system, a size, a length of the sentences and a number of tokens in a batch. In each round four steps take
turns: the system in each of the builds, and fairseq's Transformer, both with fairseq's criterion and with this
package's. A step is forward, backward, clipping and Adam. Times are those of the CPU (user and system) on one thread.

The cases are appended to the file; those that it has are skipped, and after `--minutes` no case is started. Start the
command again until it has all of them. The status is 1 if a case of the file is slower than `--slowest` times the
earlier build, and 2 while cases are missing. `slower` is this build's time divided by the earlier one's, `memory` the
same for the peak of the bytes in a step, `speed` the speed relative to fairseq's Transformer with fairseq's criterion,
`speed_alike` with this package's; medians of the rounds.
"""

import argparse
import csv
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

from rows import write_rows

HERE = Path(__file__).parent
THIS_BUILD = HERE.parents[1]
PLAIN = {"encoder_routing": "none", "decoder_routing": "none"}
SYSTEMS: Dict[str, Any] = {
    "transformer": ("capsule_transformer", PLAIN),
    "capsule-transformer": ("capsule_transformer", {}),
    "gret": ("gret_transformer", {}),
    "selective": ("selective_transformer", {}),
    "gdr": ("gdr_transformer", {"guided_heads": "none"}),
    "gdr-losses": ("gdr_transformer", {}),
}
VOCABULARY = {"tiny": 9712, "base": 32000}
SHORTEST = 1.0  # seconds of CPU in which steps are repeated
COLUMNS = """system size words tokens rounds slower memory speed speed_alike before_seconds after_seconds
    transformer_seconds transformer_alike_seconds before_mib after_mib transformer_mib transformer_alike_mib
    before after device torch fairseq python threads""".split()


class Case(NamedTuple):
    system: str
    size: str
    words: int  # 0: lengths of Multi30k
    tokens: int


def work() -> None:
    """Run in a process of its own, with the package of one of the builds: answer each line of the input by a line."""
    import torch
    from measure import environment, peak_memory, seeded
    from systems import (
        LabelSmoothedCrossEntropyCriterion,
        RoutingLossesConfig,
        RoutingLossesCriterion,
        Training,
        baseline_options,
        build,
        build_batches,
        build_task,
        guided_weights,
        preset_options,
    )

    torch.set_num_threads(1)
    case = Case(**json.loads(sys.stdin.readline()))
    smoothed = {"sentence_avg": False, "label_smoothing": 0.1}
    with seeded(1):
        task = build_task(VOCABULARY[case.size])
        batches = build_batches(task, case.tokens, 1, case.words, "cpu")

    def training(name: str) -> Training:
        arch, further = SYSTEMS[case.system]
        options = preset_options(f"{arch}_{case.size}", **further)
        if name != "system":
            arch, options = "transformer", baseline_options(f"capsule_transformer_{case.size}")
        with seeded(1):
            model = build(arch if arch == "transformer" else f"{arch}_{case.size}", task, **options)
        if name == "transformer":
            return Training(model, LabelSmoothedCrossEntropyCriterion(task, **smoothed), batches)
        weights = guided_weights(options)
        return Training(model, RoutingLossesCriterion(task, RoutingLossesConfig(**smoothed, **weights)), batches)

    runs: Dict[str, Training] = {}
    print(json.dumps(environment("cpu")), flush=True)
    for line in sys.stdin:
        what, name = line.split()
        run = runs[name] = runs.get(name) or training(name)
        print(json.dumps(peak_memory(run, "cpu") / 2**20 if what == "memory" else seconds(run)), flush=True)


def seconds(run: Callable[[], None]) -> float:
    """The CPU time of a step: of one that takes long, the mean of several short ones."""
    start, steps = time.process_time(), 0
    while time.process_time() - start < SHORTEST:
        run()
        steps += 1
    return (time.process_time() - start) / steps


class Worker:
    """The process of one build."""

    def __init__(self, build: Path, case: Case):
        kept = {f"MALLOC_{name}_": "4000000000" for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD")}  # as in train.sh
        path = os.pathsep.join([str(build), str(HERE)])
        environment = {**os.environ, **kept, "MALLOC_TOP_PAD_": "100000000", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", str(HERE / "builds.py"), "--work"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.messages = tempfile.TemporaryFile("w+")  # the profiler writes a line whenever it starts
        self.process: Any = subprocess.Popen(command, env=environment, cwd=build, stderr=self.messages, **pipes)
        self.environment: Dict[str, Any] = self.ask(json.dumps(case._asdict()))

    def ask(self, line: str) -> Any:
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline()
        if not answer:
            self.messages.seek(0)
            sys.exit(f"{self.messages.read()}\nbuilds.py: the process of a build ended with the error above")
        return json.loads(answer)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(case: Case, args: argparse.Namespace) -> Dict[str, object]:
    """Measure a case, and return its row."""
    before, after = Worker(args.before.resolve(), case), Worker(THIS_BUILD, case)
    runs = {
        "before": (before, "system"),
        "after": (after, "system"),
        "transformer": (after, "transformer"),
        "transformer_alike": (after, "alike"),
    }
    row: Dict[str, object] = {**case._asdict(), "rounds": args.rounds, **after.environment}
    times: Dict[str, List[float]] = {name: [] for name in runs}
    for turn in range(-1, args.rounds):  # the first round warms up
        for name in runs if turn % 2 else reversed(list(runs)):
            worker, model = runs[name]
            seconds = worker.ask(f"time {model}")
            if turn >= 0:
                times[name].append(seconds)
    peaks = {name: worker.ask(f"memory {model}") for name, (worker, model) in runs.items()}
    row.update({f"{name}_seconds": statistics.median(values) for name, values in times.items()})
    row.update({f"{name}_mib": peak for name, peak in peaks.items()})
    for worker, name, build in ((before, "before", args.before), (after, "after", THIS_BUILD)):
        command = ["git", "-C", str(build), "describe", "--always", "--dirty"]
        row[name] = subprocess.check_output(command, text=True).strip()
        worker.close()

    def median_ratio(first: str, second: str) -> float:
        return statistics.median(one / other for one, other in zip(times[first], times[second]))

    row.update(slower=median_ratio("after", "before"), memory=peaks["after"] / peaks["before"])
    row.update(speed=median_ratio("transformer", "after"), speed_alike=median_ratio("transformer_alike", "after"))
    return row


def measured(path: Path) -> Dict[Case, Dict[str, str]]:
    """Return the rows of the file, by their cases."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            Case(row["system"], row["size"], int(row["words"]), int(row["tokens"])): row for row in csv.DictReader(file)
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, metavar="DIR", help="a checkout of the earlier build")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, metavar="NAME")
    parser.add_argument("--sizes", nargs="+", default=list(VOCABULARY), choices=VOCABULARY)
    parser.add_argument("--words", nargs="+", type=int, default=[0, 15, 30, 100], help="0: lengths of Multi30k")
    parser.add_argument("--tokens", nargs="+", type=int, default=[60, 4096])
    parser.add_argument("--rounds", type=int, default=4, help="an even number")
    parser.add_argument("--minutes", type=float, default=5, help="start no case after them")
    parser.add_argument("--slowest", type=float, default=1.03)
    args = parser.parse_args()
    started = time.monotonic()
    cases = [Case(*case) for case in itertools.product(args.systems, args.sizes, args.words, args.tokens)]
    for case in cases:
        if case in measured(args.out) or time.monotonic() - started > 60 * args.minutes:
            continue
        row = compare(case, args)
        write_rows(args.out, [row], COLUMNS)
        print("  ".join(f"{name} {row[name]}" for name in Case._fields), end="  ")
        print("  ".join(f"{name} {row[name]:.3f}" for name in ("slower", "memory", "speed", "speed_alike")), flush=True)
    found = measured(args.out)
    slower = [case for case in cases if case in found and float(found[case]["slower"]) > args.slowest]
    for case in slower:
        print(f"slower than {args.slowest}: {case} {found[case]['slower']}", file=sys.stderr)
    missing = [case for case in cases if case not in found]
    if missing:
        print(f"{len(missing)} of {len(cases)} cases are missing; start the command again", file=sys.stderr)
    sys.exit(1 if slower else 2 if missing else 0)


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else main()
