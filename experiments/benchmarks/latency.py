"""Measure the milliseconds per sentence at batch size 1, and the time of a target step by source length.

    python experiments/benchmarks/latency.py --archs capsnmt_base transformer --vocabulary 32000 --json

The models alternate. Sentences have Multi30k's lengths, and each hypothesis is as long as its reference. In the sweep
over source lengths the hypotheses have `--steps` words, and then twice as many. The difference gives the time of a step
without the encoding of the source. `transformer` and `lstm` get the sizes of the first architecture of this package.

The last line is a JSON object: `milliseconds` (mean and percentiles), `speedup` (the last architecture's mean divided
by each mean), `step_milliseconds` by length, `flatness` (the step at the longest source divided by the step at the
shortest), and versions.
"""

import json
import statistics
from typing import Dict, List

import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from measure import alternate, environment, parser_of_models, seeded
from systems import Generation, baseline_options, build, build_sentences, build_task, option, preset_options


def build_models(archs: List[str], further: Dict[str, object], task, device: str) -> Dict[str, torch.nn.Module]:
    """Build the models, by name. `further` are options of the first one."""
    ours = next((arch for arch in archs if "transformer" != arch != "lstm"), archs[0])
    models = {}
    of_ours = further if ours == archs[0] else {}
    for arch in archs:
        of_arch = further if arch == archs[0] else {}
        if arch in ("transformer", "lstm"):
            options = {**baseline_options(ours, **of_ours), **of_arch}
        else:
            options = preset_options(arch, **of_arch)
        models[arch] = build(arch, task, **options).to(device)
    return models


def percentile(values: List[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def sentence_times(models, task, args) -> Dict[str, List[float]]:
    """Return the milliseconds of each sentence, as the median of the rounds."""
    sentences = build_sentences(task, args.sentences, 0, args.device)
    times: Dict[str, List[float]] = {name: [] for name in models}
    for sentence in sentences:
        runs = {name: Generation(model, task, [sentence], args.beam) for name, model in models.items()}
        for name, found in alternate(runs, args.rounds, args.device).items():
            times[name].append(1000 * statistics.median(found))
    return times


def step_times(models, task, args) -> Dict[str, Dict[int, float]]:
    """Return the milliseconds of a target step for each source length, as the median of the rounds."""
    found: Dict[str, Dict[int, float]] = {name: {} for name in models}
    for length in args.lengths:
        sentence = build_sentences(task, 1, length, args.device)
        runs = {
            (name, steps): Generation(model, task, sentence, args.beam, steps)
            for name, model in models.items()
            for steps in (args.steps, 2 * args.steps)
        }
        times = alternate({f"{name}, {steps}": run for (name, steps), run in runs.items()}, args.rounds, args.device)
        for name in models:
            longer, shorter = times[f"{name}, {2 * args.steps}"], times[f"{name}, {args.steps}"]
            found[name][length] = statistics.median(1000 * (a - b) / args.steps for a, b in zip(longer, shorter))
    return found


def main():
    parser = parser_of_models(__doc__)
    parser.add_argument("--archs", nargs="+", required=True, choices=sorted(ARCH_MODEL_REGISTRY), metavar="ARCH")
    parser.add_argument(
        "--option", type=option, action="append", default=[], metavar="NAME=VALUE", help="an option of the first ARCH"
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--vocabulary", type=int, default=9712, help="dictionary entries (default: Multi30k's 9,712)")
    parser.add_argument("--sentences", type=int, default=30)
    parser.add_argument(
        "--lengths", type=int, nargs="*", default=[10, 20, 40, 80, 160, 320], help="source lengths of the sweep"
    )
    parser.add_argument("--steps", type=int, default=16, help="target words of the shorter hypotheses in the sweep")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()

    with seeded(1):
        task = build_task(args.vocabulary)
        models = build_models(args.archs, dict(args.option), task, args.device)
        times = sentence_times(models, task, args)
        steps = step_times(models, task, args)
    means = {name: statistics.mean(found) for name, found in times.items()}
    last = args.archs[-1]
    report = {
        "archs": args.archs,
        "milliseconds": {
            name: {"mean": means[name], **{f"p{p}": percentile(found, p / 100) for p in (50, 90, 99)}}
            for name, found in times.items()
        },
        "speedup": {name: means[last] / mean for name, mean in means.items()},
        "step_milliseconds": steps,
        "flatness": {name: found[max(found)] / found[min(found)] for name, found in steps.items() if found},
        "parameters": {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()},
        "settings": {key: value for key, value in vars(args).items() if key not in ("archs", "json")},
        **environment(args.device),
    }
    print_report(report)
    if args.json:
        print(json.dumps(report))


def print_report(report: dict) -> None:
    for name, found in report["milliseconds"].items():
        print(f"{name:28}", "  ".join(f"{key} {value:7.1f} ms" for key, value in found.items()), end="")
        print(f"  {report['speedup'][name]:.2f} times as fast as {report['archs'][-1]}")
    for name, found in report["step_milliseconds"].items():
        by_length = "  ".join(f"{length}: {value:.2f} ms" for length, value in found.items())
        print(f"{name:28} target step by source length  {by_length}")


if __name__ == "__main__":
    main()
