"""Tokens per second of an architecture and of fairseq's own model of the same dimensions, in alternation.

    python benchmarks/throughput.py --arch capsule_transformer_tiny --mode train --json

The last line is a JSON object: `ratio` (the architecture's tokens per second by the baseline's, the median of the
rounds), both speeds, peak memory, versions.
"""

import argparse
import json
import math
import statistics
from argparse import Namespace
from typing import Dict, List

import torch
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, build_model
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from measure import alternate, environment, median_ratio, peak_memory, seeded

# Subwords of Multi30k's training sentences with 10,000 joint merges, end of sentence included: mean and deviation of
# the logarithm of their number.
LOG_LENGTH = (2.68, 0.31)


def build_task(vocabulary: int) -> TranslationTask:
    dictionary = Dictionary()
    for index in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    return TranslationTask(TranslationConfig(), dictionary, dictionary)


def build_models(arch: str, baseline: str, task: TranslationTask) -> Dict[str, torch.nn.Module]:
    """The architecture and a baseline that takes every option of the same name from its preset."""
    preset = MODEL_DATACLASS_REGISTRY[arch](share_all_embeddings=True)
    options = {name: value for name, value in vars(preset).items() if value is not None and name != "_name"}
    return {
        arch: build_model(Namespace(**{**options, "arch": arch}), task),
        baseline: build_model(Namespace(**{**options, "arch": baseline}), task),
    }


def build_batches(task: TranslationTask, max_tokens: int, number: int, length: int, device: str) -> List[dict]:
    """Batches as fairseq makes them: sentences of like length together, sources padded left, targets right."""
    words = len(task.source_dictionary) - task.source_dictionary.nspecial
    mean, deviation = (math.log(length), 0.0) if length else LOG_LENGTH
    pairs = []
    while sum(max(len(source), len(target)) for source, target in pairs) < 1.1 * number * max_tokens:
        common = torch.randn(1)
        lengths = (mean + deviation * (0.9 * common + 0.44 * torch.randn(2))).exp().round().clamp(3, 200).int()
        pairs.append([task.source_dictionary.nspecial + torch.randint(words, (n,)) for n in lengths.tolist()])
    pairs.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    batches, batch, longest = [], [], 0
    for identity, (source, target) in enumerate(pairs):
        longest = max(longest, len(source), len(target))
        if longest * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch, longest = [], max(len(source), len(target))
        batch.append({"id": identity, "source": source, "target": target})
    pad, eos = task.source_dictionary.pad(), task.source_dictionary.eos()
    chosen = [batches[index] for index in torch.linspace(0, len(batches) - 1, number).round().long().tolist()]
    collated = [collate(batch, pad, eos, left_pad_source=True, left_pad_target=False) for batch in chosen]
    return [utils.move_to_cuda(batch) for batch in collated] if device == "cuda" else collated


class Training:
    """One pass over the batches: forward, backward, clipping, Adam."""

    def __init__(self, model, task, batches):
        self.model = model.train()
        self.batches = batches
        config = LabelSmoothedCrossEntropyCriterionConfig(label_smoothing=0.1)
        self.criterion = LabelSmoothedCrossEntropyCriterion(task, config.sentence_avg is True, config.label_smoothing)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))

    def __call__(self):
        for batch in self.batches:
            self.optimizer.zero_grad()
            loss, sample_size, _ = self.criterion(self.model, batch)
            (loss / sample_size).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
            self.optimizer.step()


class Generation:
    """Beam search over the batches, every hypothesis as long as its batch's longest reference."""

    def __init__(self, model, task, batches, beam):
        self.model = model.eval()
        model.make_generation_fast_()
        self.batches = batches
        self.generators = [
            SequenceGenerator(
                [model],
                task.target_dictionary,
                beam_size=beam,
                max_len_b=b["target"].size(1),
                min_len=b["target"].size(1),
            )
            for b in batches
        ]

    def __call__(self):
        for generator, batch in zip(self.generators, self.batches):
            generator.generate([self.model], batch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", required=True, choices=sorted(ARCH_MODEL_REGISTRY), metavar="ARCH")
    parser.add_argument("--baseline", default="transformer", choices=sorted(ARCH_MODEL_REGISTRY), metavar="ARCH")
    parser.add_argument("--mode", required=True, choices=["train", "generate"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--vocabulary", type=int, default=9712, help="dictionary entries (default: Multi30k's 9,712)")
    parser.add_argument("--max-tokens", type=int, default=4096, help="tokens a batch")
    parser.add_argument("--batches", type=int, default=4, help="batches a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--length", type=int, default=0, help="words of every sentence (default: Multi30k's lengths)")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()

    with seeded(1):
        task = build_task(args.vocabulary)
        models = build_models(args.arch, args.baseline, task)
        batches = build_batches(task, args.max_tokens, args.batches, args.length, args.device)
    tokens = sum(batch["ntokens"] for batch in batches)
    runs = {}
    for name, model in models.items():
        model.to(args.device)
        runs[name] = (
            Training(model, task, batches) if args.mode == "train" else Generation(model, task, batches, args.beam)
        )
    times = alternate(runs, args.rounds, args.device)
    report = {
        "mode": args.mode,
        "arch": args.arch,
        "baseline": args.baseline,
        "ratio": median_ratio(times[args.baseline], times[args.arch]),
        "tokens_per_second": {name: tokens / statistics.median(times[name]) for name in models},
        "peak_memory_bytes": {name: peak_memory(run, args.device) for name, run in runs.items()},
        "parameters": {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()},
        "settings": {
            key: value for key, value in vars(args).items() if key not in ("arch", "baseline", "mode", "json")
        },
        **environment(args.device),
    }
    for name in models:
        speed, memory = report["tokens_per_second"][name], report["peak_memory_bytes"][name] / 2**20
        print(f"{name:32} {speed:10.0f} tokens/s {memory:8.0f} MiB")
    print(f"{args.arch} runs at {report['ratio']:.3f} of {args.baseline}'s speed ({args.mode})")
    if args.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
