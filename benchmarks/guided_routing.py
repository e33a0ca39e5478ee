"""Measure memory and time of guided dynamic routing, compared with the plain expression of Eq. 7.

    python benchmarks/guided_routing.py --json

Source and target have `T = I` words. For several capsule sizes `d_c` it measures the bytes of the distinct storages
that are saved for the backward pass, the peak memory, and the time of forward and backward. The last line is a JSON
object.
"""

import argparse
import json
import statistics
from functools import partial
from typing import Callable, Dict
from unittest import mock

import torch
from measure import alternate, environment, median_ratio, peak_memory, seeded

from capsule_routing.functions import guided
from capsule_routing.modules import GuidedDynamicRouting


def plain_scores(left, right, vectors, right_exponential=None):
    """Compute `additive_scores` by its plain definition."""
    return torch.tanh(left.unsqueeze(2) + right.unsqueeze(1)) @ vectors.t()


def forward(module, inputs, scores) -> torch.Tensor:
    with mock.patch.object(guided, "additive_scores", scores):
        return module(*inputs).capsules


def forward_backward(run: Callable[[], torch.Tensor]) -> None:
    run().sum().backward()


def saved_bytes(run: Callable[[], object]) -> int:
    """Return the bytes of distinct storages that autograd saves in `run`, including parameters and inputs."""
    kept: Dict[int, int] = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    del result
    return sum(kept.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=128, help="words in source and in target")
    parser.add_argument("--capsule-dims", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--capsules", type=int, default=6)
    parser.add_argument("--dim", type=int, default=512, help="size of source words and states")
    parser.add_argument("--batch", type=int, default=2, help="sentences")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()

    pairs = args.batch * args.length**2 * args.capsules
    print(f"T = I = {args.length}, {args.batch} sentences: B·T·I·J numbers take {4 * pairs / 2**20:.1f} MiB")
    rows = []
    for capsule_dim in args.capsule_dims:
        with seeded(1):
            module = GuidedDynamicRouting(args.dim, args.dim, args.capsules, capsule_dim).to(args.device)
            shape = args.batch, args.length, args.dim
            inputs = [torch.randn(shape, device=args.device, requires_grad=True) for _ in range(2)]
        forwards = {
            "routing": partial(forward, module, inputs, guided.additive_scores),
            "plain": partial(forward, module, inputs, plain_scores),
        }
        runs = {name: partial(forward_backward, run) for name, run in forwards.items()}
        times = alternate(runs, args.rounds, args.device)
        row = {
            "capsule_dim": capsule_dim,
            "saved_bytes": {name: saved_bytes(run) for name, run in forwards.items()},
            "peak_memory_bytes": {name: peak_memory(run, args.device) for name, run in runs.items()},
            "seconds": {name: statistics.median(times[name]) for name in runs},
            "speed_up": median_ratio(times["plain"], times["routing"]),
        }
        rows.append(row)
        saved, peak = (
            {name: f"{number / 2**20:.1f} MiB" for name, number in row[key].items()}
            for key in ("saved_bytes", "peak_memory_bytes")
        )
        print(
            f"d_c {capsule_dim:4}: saved {saved['routing']}, plain {saved['plain']}; peak {peak['routing']}, plain "
            f"{peak['plain']}; {row['speed_up']:.1f} times as fast"
        )
    if args.json:
        print(json.dumps({"rows": rows, "pair_bytes": 4 * pairs, "settings": vars(args), **environment(args.device)}))


if __name__ == "__main__":
    main()
