"""Train or generate with several systems in turn, beside fairseq's Transformer and LSTM of the same sizes.

    python experiments/benchmarks/compare.py --device cuda --precision bf16 --max-tokens 32768 --out training.csv

The systems alternate in one process until the rounds or the seconds are spent. A system that fails, for example because
the memory is full, gets a row with its error, and the others go on. `--profile` writes the ten kernels of each system
that take most time in a training step.

Speeds are target tokens per second. `ratio` is the speed relative to `transformer`, as the median of the rounds,
`lstm_ratio` that relative to `lstm`. Memory is the peak in a pass, without parameters and optimizer. Kernels are those
of the middle batch, in training with the optimizer's: on a GPU those that ran, and the sum of their times, which does
not depend on how fast the CPU starts them; on a CPU what torch dispatches, without views.
"""

import argparse
import copy
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import torch
from measure import alternate, count_kernels, environment, keep_memory, median_ratio, peak_memory, seconds, seeded
from rows import write_rows
from systems import (
    LOG_LENGTHS,
    PRECISIONS,
    Generation,
    Training,
    baseline_options,
    build,
    build_batches,
    build_criterion,
    build_sentences,
    build_task,
    preset_options,
)
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from capsule_routing.functions import compiled

DEAREST = 10


class System(NamedTuple):
    """An architecture without its size; options; the share of steps of the bag-of-words loss."""

    arch: str
    options: Dict[str, Any] = {}
    bow_steps: float = 1.0


SYSTEMS = {
    "transformer": System("transformer"),
    "lstm": System("lstm"),
    "capsule-transformer": System("capsule_transformer"),
    "capsule-transformer-compiled": System("capsule_transformer", {"compile_routing": True}),
    "gdr": System("gdr_transformer", {"guided_heads": "none"}),
    "gdr-losses": System("gdr_transformer"),
    "gdr-losses-compiled": System("gdr_transformer", {"compile_routing": True}),
    "gdr-losses-quarter": System("gdr_transformer", bow_steps=0.25),
    "gret": System("gret_transformer"),
    "selective": System("selective_transformer"),
    "query-key-norm": System(
        "capsule_transformer", {"encoder_routing": "none", "decoder_routing": "none", "query_key_norm": "both"}
    ),
    "capsnmt": System("capsnmt"),
    "gdr-lstm": System("gdr_lstm"),
}


def build_run(name: str, args, task, batches: List[dict], precision: str):
    """Build a system, and return its model and the function that is timed."""
    system = SYSTEMS[name]
    if name == "transformer":
        arch, options = name, baseline_options(f"capsule_transformer_{args.size}")
    elif name == "lstm":
        arch, options = name, baseline_options("gdr_lstm")
    else:
        arch = system.arch if system.arch == "gdr_lstm" else f"{system.arch}_{args.size}"
        options = preset_options(arch, **system.options)
    with seeded(1), torch.device(args.device):
        model = build(arch, task, **options).to(args.device)
    if args.mode == "train":
        losses = {} if name in ("transformer", "lstm") else options
        run = Training(model, build_criterion(task, losses, bow_steps=system.bow_steps), batches, precision)
    else:
        run = Generation(model.to(PRECISIONS[precision]), task, batches, args.beam)
    return model, run


def one_batch(run):
    """Return a run of the middle batch alone, with the same model."""
    alone = copy.copy(run)
    middle = slice(len(run.batches) // 2, len(run.batches) // 2 + 1)
    alone.batches = run.batches[middle]
    if isinstance(run, Generation):
        alone.generators = run.generators[middle]
    return alone


def kernels(run, device: str) -> List[Any]:
    """Return the profiler's averages of the kernels that ran on a GPU, those that took most time first."""
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        seconds(run, device)
    found = [
        event
        for event in recorded.key_averages()
        if event.device_type == DeviceType.CUDA
        and not event.is_user_annotation
        and not event.key.startswith(("Memcpy", "Memset"))
    ]
    return sorted(found, key=lambda event: -event.self_device_time_total)


def kernel_rows(system: str, precision: str, found: List[Any]) -> List[Dict[str, Any]]:
    total = sum(event.self_device_time_total for event in found)
    return [
        {
            "system": system,
            "precision": precision,
            "kernel": event.key[:120],
            "calls": event.count,
            "milliseconds": event.self_device_time_total / 1000,
            "share": event.self_device_time_total / total,
        }
        for event in found[:DEAREST]
    ]


def compare(args, task, batches: List[dict], precision: str) -> None:
    """Measure all systems in one precision. Their rows are also written if the program is stopped meanwhile."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    start = time.monotonic()
    rows: Dict[str, Dict[str, Any]] = {}
    runs: Dict[str, Any] = {}
    profiles: List[Dict[str, Any]] = []
    times: Dict[str, List[float]] = {}
    try:
        for name in args.systems:
            row = rows[name] = {"mode": args.mode, "system": name, "precision": precision}
            try:
                runs[name] = prepare(name, args, task, batches, precision, row, profiles)
            except Exception as error:  # the others are still measured; `error` is in the result
                row["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            figures = f"{row.get('peak_mib', 0):.0f} MiB, {row.get('kernels', 0)} kernels, "
            figures += f"{row.get('kernel_milliseconds', 0):.1f} ms"
            text = row.get("error") or figures
            print(f"{time.monotonic() - start:5.0f} s  {args.mode} {precision} {name}: {text}", flush=True)
            torch.cuda.empty_cache()
        times = {name: [] for name in runs}
        for index in range(0, args.rounds, 2):
            if index and time.monotonic() - start > args.seconds:
                break
            for name, found in alternate(runs, 2, args.device, warmup=0).items():
                times[name] += found
    finally:
        add_speeds(rows, times, args, batches)
        write_rows(args.out, [{**row, **environment(args.device)} for row in rows.values()], COLUMNS)
        if args.profile:
            write_rows(args.profile, profiles, KERNEL_COLUMNS)


def prepare(name: str, args, task, batches: List[dict], precision: str, row: Dict[str, Any], profiles: list):
    """Build a system and run it: the first pass, its memory, its kernels. Return the function that is timed."""
    model, run = build_run(name, args, task, batches, precision)
    row["first_pass_seconds"] = seconds(run, args.device)
    row["peak_mib"] = peak_memory(run, args.device) / 2**20
    row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    if args.device == "cuda":
        found = kernels(one_batch(run), args.device)
        row["kernels"] = sum(event.count for event in found)
        row["kernel_milliseconds"] = sum(event.self_device_time_total for event in found) / 1000
        profiles += kernel_rows(name, precision, found)
    elif not SYSTEMS[name].options.get("compile_routing"):
        row["kernels"] = count_kernels(one_batch(run))
    return run


def add_speeds(rows: Dict[str, Dict[str, Any]], times: Dict[str, List[float]], args, batches: List[dict]) -> None:
    """Add the speeds and ratios to the rows, and print them."""
    tokens = sum(batch["ntokens"] for batch in batches)
    for name, row in rows.items():
        found = times.get(name, [])
        row.update(size=args.size, words=args.length or args.lengths_of, max_tokens=args.max_tokens, rounds=len(found))
        if not found:
            continue
        median = statistics.median(found)
        row.update(tokens_per_second=tokens / median, milliseconds=1000 * median / len(batches))
        for baseline, prefix in (("transformer", ""), ("lstm", "lstm_")):
            if times.get(baseline):
                row[f"{prefix}ratio"] = median_ratio(times[baseline], found)
                row[f"{prefix}memory_ratio"] = row["peak_mib"] / rows[baseline]["peak_mib"]
        ratios = "  ".join(f"{key} {row[key]:.3f}" for key in ("ratio", "lstm_ratio") if key in row)
        print(f"{args.mode} {row['precision']} {name:28} {tokens / median:9.0f} tokens/s  {ratios}", flush=True)


COLUMNS = """mode system size precision words max_tokens rounds tokens_per_second milliseconds ratio lstm_ratio
    peak_mib memory_ratio lstm_memory_ratio kernels kernel_milliseconds parameters first_pass_seconds error
    device torch fairseq python threads""".split()
KERNEL_COLUMNS = "system precision kernel calls milliseconds share".split()


def stop(*_: object) -> None:
    sys.exit("compare.py was stopped")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, metavar="NAME")
    parser.add_argument(
        "--mode", choices=["train", "generate", "sentences"], default="train", help="sentences: generate one at a time"
    )
    parser.add_argument("--size", choices=["base", "big", "tiny"], default="base")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=["float32"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--max-tokens", type=int, default=4096, help="tokens per batch")
    parser.add_argument("--batches", type=int, default=4, help="batches, or sentences, per round")
    parser.add_argument("--lengths-of", choices=LOG_LENGTHS, default="wmt14", help="the corpus whose lengths are drawn")
    parser.add_argument("--length", type=int, default=0, help="words of every sentence instead")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--backend", default="inductor", help="of torch.compile; aot_eager compiles no code")
    parser.add_argument("--rounds", type=int, default=10, help="at most; an even number")
    parser.add_argument("--seconds", type=float, default=60, help="start no round after them, for each precision")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="rows are appended to this CSV file")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="append each system's dearest kernels (cuda)")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    compiled.BACKEND = args.backend
    if args.device == "cpu":
        keep_memory()
    with seeded(1):
        task = build_task(args.vocabulary)
        lengths = args.length, args.device, args.lengths_of
        if args.mode == "sentences":
            batches = build_sentences(task, args.batches, *lengths)
        else:
            batches = build_batches(task, args.max_tokens, args.batches, *lengths)
    for precision in args.precision:
        compare(args, task, batches, precision)


if __name__ == "__main__":
    main()
