"""Measure the tokens per second of an architecture and of a fairseq model with the same dimensions.

    python experiments/benchmarks/throughput.py --arch capsule_transformer_tiny --mode train --json

    python experiments/benchmarks/throughput.py --arch gret_transformer_tiny --mode generate --option global_gate=none

The models alternate. With `--baseline off` the baseline is the architecture with all mechanisms off. It computes the
same numbers as fairseq's model. But in generation the models of this package project the source once for each
sentence, and fairseq's once for each hypothesis. So a part of the speed difference to fairseq's model does not come
from the mechanism.

An architecture with guided losses is trained in three ways: without the losses, with all its losses, and with the
bag-of-words loss on a quarter of the target steps. `bound` is the share of the baseline's speed that remains with two
more vocabulary projections: `t_base / (t_base + 2 t_out)`. `t_out` is the time of one projection with its log-softmax,
forward and backward.

The last line is a JSON object: `ratio` (the architecture's tokens per second divided by the baseline's, without guided
losses, as the median of the rounds), `ratios` of all ways, speeds, peak memory and versions.
"""

import json
import statistics
from typing import List

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.tasks.translation import TranslationTask
from measure import alternate, environment, keep_memory, median_ratio, parser_of_models, peak_memory, seeded
from systems import (
    Generation,
    Training,
    baseline_of,
    baseline_options,
    build,
    build_batches,
    build_criterion,
    build_task,
    guided_weights,
    mechanisms_off,
    option,
    preset_options,
)

from fairseq_capsule.models.outputs import output_embeddings

PROJECTION = "one vocabulary projection"
OFF = "off"


class Projection:
    """One vocabulary projection with its log-softmax, forward and backward, for the target words of the batches."""

    def __init__(self, model, batches):
        self.weight = output_embeddings(model)
        self.batches = batches

    def __call__(self):
        for batch in self.batches:
            target = batch["target"].flatten()
            features = torch.randn(len(target), self.weight.size(1), device=target.device, requires_grad=True)
            torch.nn.functional.cross_entropy(features @ self.weight.t(), target, reduction="sum").backward()


def build_runs(args, task: TranslationTask, batches: List[dict]):
    """Return the timed functions and their models, by name: the architecture in all its ways, and the baseline."""
    options = preset_options(args.arch, **dict(args.option))
    weights = guided_weights(options)
    guided = any(weights.values())
    without_losses = {**options, "guided_heads": "none"} if guided else options
    if args.baseline == OFF:
        baseline = build(args.arch, task, **{**options, **mechanisms_off(args.arch)})
    else:
        baseline = build(args.baseline, task, **baseline_options(args.arch, **dict(args.option)))
    models = {args.arch: build(args.arch, task, **without_losses), args.baseline: baseline}
    criterions = dict.fromkeys(models, build_criterion(task, without_losses))
    if guided and args.mode == "train":
        ways = {f"{args.arch} + losses": 1.0}
        if weights["bow_weight"]:
            ways[f"{args.arch} + losses, a quarter of the steps"] = 0.25
        for name, steps in ways.items():
            models[name] = build(args.arch, task, **options)
            criterions[name] = build_criterion(task, options, bow_steps=steps)
    for model in models.values():
        model.to(args.device)
    if args.mode == "generate":
        return {name: Generation(model, task, batches, args.beam) for name, model in models.items()}, models
    runs = {name: Training(model, criterions[name], batches) for name, model in models.items()}
    if guided:
        runs[PROJECTION] = Projection(models[args.baseline], batches)
    return runs, models


def main():
    parser = parser_of_models(__doc__)
    parser.add_argument("--arch", required=True, choices=sorted(MODEL_DATACLASS_REGISTRY), metavar="ARCH")
    parser.add_argument(
        "--baseline",
        choices=[*sorted(ARCH_MODEL_REGISTRY), OFF],
        metavar="ARCH",
        help="(default: transformer or lstm); off: the architecture with all mechanisms off",
    )
    parser.add_argument(
        "--option", type=option, action="append", default=[], metavar="NAME=VALUE", help="an option of the architecture"
    )
    parser.add_argument("--mode", required=True, choices=["train", "generate"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--vocabulary", type=int, default=9712, help="dictionary entries (default: Multi30k's 9,712)")
    parser.add_argument("--max-tokens", type=int, default=4096, help="tokens per batch")
    parser.add_argument("--batches", type=int, default=4, help="batches per round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--length", type=int, default=0, help="words per sentence (default: Multi30k's lengths)")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()
    args.baseline = args.baseline or baseline_of(args.arch)
    if args.baseline == OFF and not mechanisms_off(args.arch):
        parser.error(f"--baseline {OFF}: {args.arch} has no mechanism that can be turned off; name an architecture")

    if args.device == "cpu":
        keep_memory()
    with seeded(1):
        task = build_task(args.vocabulary)
        batches = build_batches(task, args.max_tokens, args.batches, args.length, args.device)
        runs, models = build_runs(args, task, batches)
    tokens = sum(batch["ntokens"] for batch in batches)
    report = report_of(args, runs, models, tokens)
    print_report(report, args)
    if args.json:
        print(json.dumps(report))


def report_of(args, runs, models, tokens: int) -> dict:
    """Time the runs, in each round one after another."""
    times = alternate(runs, args.rounds, args.device)
    report = {
        "mode": args.mode,
        "arch": args.arch,
        "baseline": args.baseline,
        "ratio": median_ratio(times[args.baseline], times[args.arch]),
        "ratios": {name: median_ratio(times[args.baseline], times[name]) for name in models if name != args.baseline},
        "tokens_per_second": {name: tokens / statistics.median(times[name]) for name in models},
        "peak_memory_bytes": {name: peak_memory(runs[name], args.device) for name in models},
        "parameters": {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()},
        "settings": {
            key: value for key, value in vars(args).items() if key not in ("arch", "baseline", "mode", "json")
        },
        **environment(args.device),
    }
    if PROJECTION in times:
        with_two = [base + 2 * out for base, out in zip(times[args.baseline], times[PROJECTION])]
        report["bound"] = median_ratio(times[args.baseline], with_two)
    return report


def print_report(report: dict, args) -> None:
    for name in report["parameters"]:
        speed, memory = report["tokens_per_second"][name], report["peak_memory_bytes"][name] / 2**20
        print(f"{name:56} {speed:10.0f} tokens/s {memory:8.0f} MiB")
    for name, ratio in report["ratios"].items():
        other = "its own speed with all mechanisms off" if args.baseline == OFF else f"{args.baseline}'s speed"
        print(f"{name} runs at {ratio:.3f} of {other} ({args.mode})")
    if "bound" in report:
        print(f"with two more vocabulary projections the baseline keeps {report['bound']:.3f} of its speed")


if __name__ == "__main__":
    main()
