"""Time `dynamic_routing` beside plain products and sums, forward and backward, and beside a module of another project.

    python experiments/benchmarks/routing.py --heinsen DIR --authors DIR --out routing.csv

The functions alternate in one process on one core. `ratio` is the time relative to plain products and sums, the median
of the rounds. Of the module of --heinsen, a checkout of glassroom/heinsen_routing, the computation is another one (its
votes, activations and scores are its own), so only its time is compared: it gets inputs `[B, M, D]` and returns
`[B, N, D]`, and our time then includes the votes, products of the inputs with matrices `[M, N, D, D]`.

With --authors, a checkout of zhengzx-nlp/dynamic-nmt, `GuidedDynamicRouting` is timed beside the authors'
`ContextualCapsuleLayer`, with votes and the gradients of the parameters; `ratio` is relative to ours. Theirs has
biases, a second tanh and a factor in the agreement (experiments/authors_layer.py), which take little of the time. The
code of a checkout runs: clone it from where you trust it.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from measure import Run, alternate, environment, keep_memory, median_ratio
from rows import write_rows
from torch import Tensor

from capsule_routing import dynamic_routing
from capsule_routing.modules import GuidedDynamicRouting

ITERATIONS = 3
# Sentences, inputs, outputs, size: of GRET, of CapsNMT, of Sabour et al. (2017), of a long text.
SHAPES = [(32, 27, 8, 64), (16, 27, 6, 512), (8, 1152, 10, 16), (4, 100, 32, 128)]
# Sentences, source words, target words, width, capsules, size of a capsule: tiny, Base, and Base with long sentences.
GUIDED_SHAPES = [(32, 15, 15, 128, 6, 64), (16, 27, 27, 512, 6, 256), (4, 100, 100, 512, 6, 256)]


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


def train(routing: Callable[[], Any], *leaves: Tensor) -> Run:
    """Return a run of `routing`, which gives capsules, or a tuple of them and more, with the gradients of `leaves`."""

    def run() -> None:
        result = routing()
        capsules = result[0] if isinstance(result, tuple) else result
        torch.autograd.grad(capsules.square().sum(), leaves)

    return run


def route_states(states: Tensor, weight: Tensor) -> Tensor:
    """Route with votes that are products of the inputs."""
    return dynamic_routing(torch.einsum("bmd,mnde->bmne", states, weight), ITERATIONS).capsules


def add_rows(rows: List[Dict], shape: Tuple[int, ...], runs: Dict[str, Run], rounds: int) -> None:
    """Time `runs`; the first is what the others are compared with."""
    times = alternate(runs, rounds, "cpu", warmup=3)
    for name, taken in times.items():
        ratio = median_ratio(taken, times[next(iter(runs))])
        rows.append({"shape": " ".join(map(str, shape)), "function": name, "ratio": ratio, **environment("cpu")})
        print(f"{shape}\t{name}\t{ratio:.2f}")


def time_dynamic_routing(rows: List[Dict], rounds: int, heinsen: Optional[Path]) -> None:
    """Time our routing beside plain products, and beside Heinsen's routing in the checkout `heinsen`."""
    for shape in SHAPES:
        batch, inputs, outputs, size = shape
        torch.manual_seed(1)
        votes = torch.randn(shape, requires_grad=True)
        runs = {
            "products and sums": train(partial(products_and_sums, votes), votes),
            "dynamic_routing": train(partial(dynamic_routing, votes, ITERATIONS), votes),
        }
        ours, plain = dynamic_routing(votes, ITERATIONS).capsules, products_and_sums(votes)
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5)
        if heinsen:
            sys.path.insert(0, str(heinsen))
            from heinsen_routing import EfficientVectorRouting

            states = torch.randn(batch, inputs, size, requires_grad=True)
            weight = torch.randn(inputs, outputs, size, size, requires_grad=True)
            other = EfficientVectorRouting(n_inp=inputs, n_out=outputs, d_inp=size, d_out=size, n_iters=ITERATIONS)
            leaves = states, *other.parameters()
            runs["EfficientVectorRouting"] = train(partial(other, states), *leaves)
            runs["dynamic_routing with votes"] = train(partial(route_states, states, weight), states, weight)
        add_rows(rows, shape, runs, rounds)


def time_guided_routing(rows: List[Dict], rounds: int, authors: Path) -> None:
    """Time our guided routing beside the layer of the paper's authors, in the checkout `authors`."""
    sys.path.insert(0, str(authors))
    from src.modules.capsule import ContextualCapsuleLayer

    for shape in GUIDED_SHAPES:
        batch, inputs, steps, width, capsules, size = shape
        torch.manual_seed(1)
        source = torch.randn(batch, inputs, width, requires_grad=True)
        states = torch.randn(batch, steps, width, requires_grad=True)
        padding = torch.zeros(batch, inputs, dtype=torch.bool)
        ours = GuidedDynamicRouting(width, width, capsules, size, ITERATIONS)
        theirs = ContextualCapsuleLayer(capsules, None, width, size, width, ITERATIONS, True)
        routed = partial(ours, source, states, padding)
        by_authors = partial(theirs.forward_sequence, source, padding, states)
        runs = {
            "GuidedDynamicRouting": train(routed, source, states, *ours.parameters()),
            "ContextualCapsuleLayer": train(by_authors, source, states, *theirs.parameters()),
        }
        add_rows(rows, shape, runs, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heinsen", type=Path, metavar="DIR", help="a checkout of glassroom/heinsen_routing")
    parser.add_argument("--authors", type=Path, metavar="DIR", help="a checkout of zhengzx-nlp/dynamic-nmt")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: List[Dict] = []
    time_dynamic_routing(rows, options.rounds, options.heinsen)
    if options.authors:
        time_guided_routing(rows, options.rounds, options.authors)
    write_rows(options.out, rows, list(rows[0]))


if __name__ == "__main__":
    keep_memory()
    main()
