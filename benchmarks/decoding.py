"""Measure the time of a decoding step by prefix length, for an architecture and a fairseq model of the same size.

    python benchmarks/decoding.py --arch capsule_transformer_base --json

A step is the work of a decoder in beam search: reorder the cached states, then compute the logits of the next word.
Both models decode the same random words with the same random reorderings. Their steps alternate. The figure at a prefix
is the median of the `--window` steps that end there.

The last line is a JSON object. `rows` has the milliseconds by prefix and their `ratio` (the architecture divided by
fairseq). `extra_growth` is the time that the architecture adds to fairseq's step at 480 words, divided by the same at
96 words; 5 is linear.
"""

import argparse
import json
import statistics
from functools import partial
from typing import Dict, List, Optional

import torch
from fairseq.models import MODEL_DATACLASS_REGISTRY
from measure import environment, keep_memory, seconds, seeded
from systems import baseline_of, baseline_options, build, build_sentences, build_task, option, preset_options
from tqdm import trange

# Between these prefixes `extra_growth` is measured.
SHORT, LONG = 96, 480


class Decoding:
    """Decoding steps for one sentence with `beam` hypotheses. Words and reorderings are given, not searched."""

    def __init__(self, model: torch.nn.Module, sentence: dict, beam: int):
        self.decoder = model.decoder
        model.eval()
        model.make_generation_fast_()
        encoded = model.encoder.forward_torchscript(sentence["net_input"])
        order = torch.zeros(beam, dtype=torch.long, device=sentence["net_input"]["src_tokens"].device)
        self.encoded = model.encoder.reorder_encoder_out(encoded, order)
        self.state: Dict[str, Dict[str, Optional[torch.Tensor]]] = {}

    def step(self, tokens: torch.Tensor, order: torch.Tensor) -> None:
        if self.state:
            self.decoder.reorder_incremental_state_scripting(self.state, order)
        self.decoder(tokens, encoder_out=self.encoded, incremental_state=self.state)


def step_times(models: Dict[str, torch.nn.Module], sentence: dict, words: int, args) -> Dict[str, List[float]]:
    """Return the seconds of each step of each model, up to the longest prefix."""
    runs = {name: Decoding(model, sentence, args.beam) for name, model in models.items()}
    times: Dict[str, List[float]] = {name: [] for name in runs}
    tokens = torch.randint(4, words, (args.beam, max(args.prefixes)), device=args.device)
    for index in trange(max(args.prefixes), desc=" / ".join(runs), leave=False):
        order = torch.randint(args.beam, (args.beam,), device=args.device)
        for name in runs if index % 2 else reversed(list(runs)):
            run = partial(runs[name].step, tokens[:, : index + 1], order)
            times[name].append(seconds(run, args.device))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="capsule_transformer_base", choices=sorted(MODEL_DATACLASS_REGISTRY))
    parser.add_argument(
        "--option", type=option, action="append", default=[], metavar="NAME=VALUE", help="an option of the architecture"
    )
    parser.add_argument("--prefixes", type=int, nargs="+", default=[32, 96, 160, 224, 288, 352, 416, 480, 512])
    parser.add_argument("--window", type=int, default=16, help="number of steps in a median")
    parser.add_argument("--source", type=int, default=20, help="words in the source")
    parser.add_argument("--vocabulary", type=int, default=9712, help="dictionary entries (default: Multi30k's 9,712)")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1, help="number of decodings; their steps are pooled")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()
    if min(args.prefixes) < args.window:
        parser.error(f"--prefixes must be at least --window, {args.window}")

    if args.device == "cpu":
        keep_memory()
    baseline = baseline_of(args.arch)
    further = dict(args.option)
    with seeded(1), torch.no_grad():
        task = build_task(args.vocabulary)
        options = {args.arch: preset_options(args.arch, **further), baseline: baseline_options(args.arch, **further)}
        models = {name: build(name, task, **options[name]).to(args.device) for name in options}
        [sentence] = build_sentences(task, 1, args.source, args.device)
        rounds = [step_times(models, sentence, args.vocabulary, args) for _ in range(args.rounds)]
    rows = []
    for prefix in args.prefixes:
        ending = slice(prefix - args.window, prefix)
        steps = {name: [1000 * s for times in rounds for s in times[name][ending]] for name in models}
        milliseconds = {name: statistics.median(found) for name, found in steps.items()}
        ours, fairseq = milliseconds[args.arch], milliseconds[baseline]
        rows.append({"prefix": prefix, "milliseconds": milliseconds, "ratio": ours / fairseq, "extra": ours - fairseq})
        print(
            f"{prefix:5} words: {args.arch} {ours:7.1f} ms, {baseline} {fairseq:7.1f} ms, ratio {ours / fairseq:5.2f}"
        )
    report = {"arch": args.arch, "baseline": baseline, "rows": rows, "settings": vars(args), **environment(args.device)}
    extra = {row["prefix"]: row["extra"] for row in rows}
    if {SHORT, LONG} <= set(extra):
        report["extra_growth"] = extra[LONG] / extra[SHORT]
        print(f"the time added to fairseq's step grows {report['extra_growth']:.1f} times from {SHORT} to {LONG} words")
    if args.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
