"""Time `dynamic_routing` beside plain products and sums, forward and backward, and beside a module of another project.

    python experiments/benchmarks/routing.py --heinsen DIR --out routing.csv

The functions alternate in one process on one core. `ratio` is the time relative to plain products and sums, the median
of the rounds. Of the module of --heinsen, a checkout of glassroom/heinsen_routing, the computation is another one (its
votes, activations and scores are its own), so only its time is compared: it gets inputs `[B, M, D]` and returns
`[B, N, D]`, and our time then includes the votes, products of the inputs with matrices `[M, N, D, D]`.
"""

import argparse
import sys
from pathlib import Path

import torch
from measure import alternate, environment, keep_memory, median_ratio
from rows import write_rows
from torch import Tensor

from capsule_routing import dynamic_routing

ITERATIONS = 3
# Sentences, inputs, outputs, size: of GRET, of CapsNMT, of Sabour et al. (2017), of a long text.
SHAPES = [(32, 27, 8, 64), (16, 27, 6, 512), (8, 1152, 10, 16), (4, 100, 32, 128)]


def products_and_sums(votes: Tensor) -> Tensor:
    """Route as a reader of the paper would write it."""
    logits = votes.new_zeros(votes.shape[:-1])
    for iteration in range(ITERATIONS):
        sums = (logits.softmax(-1).unsqueeze(-1) * votes).sum(-3)
        norm = sums.norm(dim=-1, keepdim=True)
        capsules = sums * norm / (1 + norm**2)
        if iteration < ITERATIONS - 1:
            logits = logits + (votes * capsules.unsqueeze(-3)).sum(-1)
    return capsules


def train(function, *inputs: Tensor):
    """Return a run of `function` with the gradients of its inputs."""

    def run() -> None:
        torch.autograd.grad(function(*inputs).square().sum(), inputs)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heinsen", type=Path, metavar="DIR", help="a checkout of glassroom/heinsen_routing")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for shape in SHAPES:
        batch, inputs, outputs, size = shape
        torch.manual_seed(1)
        votes = torch.randn(shape, requires_grad=True)
        runs = {
            "products and sums": train(products_and_sums, votes),
            "dynamic_routing": train(lambda votes: dynamic_routing(votes, ITERATIONS).capsules, votes),
        }
        ours, plain = dynamic_routing(votes, ITERATIONS).capsules, products_and_sums(votes)
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5)
        if options.heinsen:
            sys.path.insert(0, str(options.heinsen))
            from heinsen_routing import EfficientVectorRouting

            states = torch.randn(batch, inputs, size, requires_grad=True)
            weight = torch.randn(inputs, outputs, size, size, requires_grad=True)
            other = EfficientVectorRouting(n_inp=inputs, n_out=outputs, d_inp=size, d_out=size, n_iters=ITERATIONS)
            runs["EfficientVectorRouting"] = train(other, states)
            runs["dynamic_routing with votes"] = train(
                lambda states, weight: (
                    dynamic_routing(torch.einsum("bmd,mnde->bmne", states, weight), ITERATIONS).capsules
                ),
                states,
                weight,
            )
        times = alternate(runs, options.rounds, "cpu", warmup=3)
        for name, taken in times.items():
            ratio = median_ratio(taken, times["products and sums"])
            rows.append({"shape": " ".join(map(str, shape)), "function": name, "ratio": ratio, **environment("cpu")})
            print(f"{shape}\t{name}\t{ratio:.2f}")
    write_rows(options.out, rows, list(rows[0]))


if __name__ == "__main__":
    keep_memory()
    main()
