"""Shared code of the benchmarks: alternated timing, peak memory, kernels, and a description of the environment."""

import argparse
import contextlib
import os
import platform
import statistics
import sys
import time
from typing import Callable, Dict, List

import fairseq
import torch
from fairseq import utils
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from tqdm import tqdm

import fairseq_capsule.tasks  # noqa: F401  registers the architectures

Run = Callable[[], object]

# Views that their schema does not mark as views, and queries of a value or a type.
FREE = {"aten::_unsafe_view", "aten::unsafe_split", "aten::_local_scalar_dense", "aten::promote_types"}


def parser_of_models(description: str) -> argparse.ArgumentParser:
    """Return a parser with the option --user-dir. That plugin is imported first: it may define an architecture."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--user-dir", metavar="DIR", help="a plugin with an architecture of your own")
    utils.import_user_module(first.parse_known_args()[0])
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[first]
    )


def keep_memory() -> None:
    """Start the program again with the settings of glibc that train.sh gives to a training on a CPU.

    Nothing changes if the environment has them. With them glibc keeps the memory of large tensors. Without them the
    kernel zeroes its pages at every operation.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        kept = {f"MALLOC_{name}_": "4000000000" for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD")}
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **kept, "MALLOC_TOP_PAD_": "100000000"})


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run: Run, device: str) -> float:
    synchronize(device)
    start = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - start


def alternate(runs: Dict[str, Run], rounds: int, device: str, warmup: int = 1) -> Dict[str, List[float]]:
    """Return the seconds of each run in each round.

    The runs alternate, and the order is reversed in each round. So other load on the machine affects all of them.
    """
    times: Dict[str, List[float]] = {name: [] for name in runs}
    names = list(runs)
    for index in tqdm(range(-warmup, rounds), desc=" / ".join(names), leave=False):
        for name in names if index % 2 else reversed(names):
            elapsed = seconds(runs[name], device)
            if index >= 0:
                times[name].append(elapsed)
    return times


def median_ratio(numerators: List[float], denominators: List[float]) -> float:
    """Return the median of the ratios of the rounds."""
    return statistics.median(n / d for n, d in zip(numerators, denominators))


def peak_memory(run: Run, device: str) -> int:
    """Return the peak of the bytes of tensors during `run`, minus those allocated before it."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


class Kernels(TorchDispatchMode):
    """While active, count in `number` the dispatched operations that are not views."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += not (function.is_view or function._schema.name in FREE)
        return function(*args, **(kwargs or {}))


def count_kernels(run: Run) -> int:
    """Return how many operations torch dispatches to its CPU kernels."""
    with Kernels() as kernels:
        run()
    return kernels.number


def environment(device: str) -> Dict[str, object]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "fairseq": fairseq.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
    }


@contextlib.contextmanager
def seeded(seed: int):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
