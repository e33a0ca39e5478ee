"""`fairseq-capsule nll`, `size` and `probe`: figures of trained models.

- nll: the negative log-likelihood of a split's references, in bits per token;
- size: the parameters, how many of them are word embeddings, and the readings of the papers;
- probe: how much of the target a trained probe predicts from what it reads of the source.
"""

import math
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq.modules import LearnedPositionalEmbedding
from torch import nn

from fairseq_capsule.checkpoints.models import load_criterion, load_with_data
from fairseq_capsule.criterions.bag_of_words_probe import TOPS, BagOfWordsProbe
from fairseq_capsule.options import in_words, readings
from fairseq_capsule_lab.analysis.models import batches, negative_log_likelihood
from fairseq_capsule_lab.cli.arguments import add_checkpoints, add_json
from fairseq_capsule_lab.errors import LabError

Row = dict[str, Any]


def add_nll_arguments(parser: ArgumentParser) -> None:
    add_checkpoints(parser, split="valid")
    add_json(parser)


def run_nll(args: Namespace) -> Row:
    with warnings.catch_warnings():
        # fairseq calls torch in ways that torch advises against. The user cannot change that.
        warnings.filterwarnings("ignore", category=UserWarning, module="torch")
        rows = [_likelihood(path, args.data, args.split) for path in args.checkpoints]
    for row in rows:
        print(f"{row['nll']:.3f} bits a token, {row['tokens']:,} tokens of {args.split}: {row['checkpoint']}")
    return {"split": args.split, "rows": rows}


def _likelihood(path: Path, data: Path, split: str) -> Row:
    """The mean over the target tokens, end-of-sentence included, with teacher forcing, in bits."""
    model, _, task = load_with_data(path, data)
    nll, tokens = 0.0, 0
    for sample in batches(path, task, split, f"nll {path.name}"):
        bits, number = negative_log_likelihood(model, sample, task.target_dictionary.pad())
        nll += bits
        tokens += number
    if not math.isfinite(nll):
        raise LabError(f"{path}: its negative log-likelihood is {nll}; its parameters are damaged, so train again")
    return {"checkpoint": str(path), "tokens": tokens, "nll": nll / tokens}


def add_size_arguments(parser: ArgumentParser) -> None:
    add_checkpoints(parser)
    add_json(parser)


def run_size(args: Namespace) -> Row:
    models = [_size(path, args.data) for path in args.checkpoints]
    for row in models:
        reading = f" ({in_words(row['readings'])})" if row["readings"] else ""
        counts = f"{row['parameters']:>14,} parameters, {row['embeddings']:,} of them embeddings"
        print(f"{counts}: {row['checkpoint']}{reading}")
    return {"models": models}


def _size(path: Path, data: Path) -> Row:
    model, cfg, _ = load_with_data(path, data)
    embeddings = {
        part.weight  # a shared weight counts once
        for part in model.modules()
        if isinstance(part, nn.Embedding) and not isinstance(part, LearnedPositionalEmbedding)
    }
    return {
        "checkpoint": str(path),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "embeddings": sum(weight.numel() for weight in embeddings),
        "readings": readings(cfg.model),
    }


def add_probe_arguments(parser: ArgumentParser) -> None:
    add_checkpoints(parser, split="test", trained="probes trained with bag_of_words_probe")
    add_json(parser)


def run_probe(args: Namespace) -> Row:
    rows = [_recall(path, args.data, args.split) for path in args.checkpoints]
    print(f"share of a target's distinct words among the K most probable ones, mean over the sentences of {args.split}")
    print("  ".join([f"{'reads':8}", *(f"K = {top:<6}" for top in TOPS), "checkpoint"]))
    for row in rows:
        figures = (f"{row[f'bag_recall_{top}']:<10.4f}" for top in TOPS)
        print("  ".join([f"{row['reads']:8}", *figures, row["checkpoint"]]))
    return {"split": args.split, "rows": rows}


def _recall(path: Path, data: Path, split: str) -> Row:
    model, cfg, task = load_with_data(path, data)
    name = getattr(cfg.criterion, "_name", cfg.criterion)
    if name != "bag_of_words_probe":
        raise LabError(f"{path}: trained with {name}; give a model trained with bag_of_words_probe")
    criterion: BagOfWordsProbe = load_criterion(path, cfg, task)
    totals = dict.fromkeys((f"bag_recall_{top}" for top in TOPS), 0.0)
    sentences = 0
    for sample in batches(path, task, split, f"probe {path.name}"):
        with torch.no_grad():
            _, size, log = criterion(model, sample)
        sentences += size
        for name in totals:
            totals[name] += float(log[name])
    means = {name: total / sentences for name, total in totals.items()}
    return {"checkpoint": str(path), "reads": criterion.reads, "sentences": sentences, **means}
