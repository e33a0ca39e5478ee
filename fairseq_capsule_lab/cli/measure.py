"""`fairseq-capsule nll`, `size` and `probe`: figures of trained models."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli.arguments import CHECKPOINTS, JSON, split_option
from fairseq_capsule_lab.cli.commands import command

Row = dict[str, Any]


@command("nll", "runs/capsule/checkpoint_best.pt --data data/multi30k")
@CHECKPOINTS
@split_option("valid")
@JSON
def nll(checkpoints: Sequence[Path], data: Path, split: str) -> Row:
    """Compute the negative log-likelihood of a split's references under each model, in bits per token."""
    with warnings.catch_warnings():
        # fairseq calls torch in ways that torch advises against. The user cannot change that.
        warnings.filterwarnings("ignore", category=UserWarning, module="torch")
        rows = [_likelihood(path, data, split) for path in checkpoints]
    for row in rows:
        print(f"{row['nll']:.3f} bits a token, {row['tokens']:,} tokens of {split}: {row['checkpoint']}")
    return {"split": split, "rows": rows}


def _likelihood(path: Path, data: Path, split: str) -> Row:
    """The mean over the target tokens, end-of-sentence included, with teacher forcing, in bits."""
    from fairseq_capsule.checkpoints.models import load_with_data
    from fairseq_capsule_lab.analysis.batches import batches, negative_log_likelihood

    model, _, task = load_with_data(path, data)
    total, tokens = 0.0, 0
    for sample in batches(path, task, split, f"nll {path.name}"):
        bits, number = negative_log_likelihood(model, sample, task.target_dictionary.pad())
        total += bits
        tokens += number
    return {"checkpoint": str(path), "tokens": tokens, "nll": total / tokens}


@command("size", "runs/capsule/checkpoint_best.pt --data data/multi30k")
@CHECKPOINTS
@JSON
def size(checkpoints: Sequence[Path], data: Path) -> Row:
    """Count the parameters of each model, and how many of them are word embeddings."""
    from fairseq_capsule.options import in_words

    models = [_size(path, data) for path in checkpoints]
    for row in models:
        interpretation = f" ({in_words(row['interpretations'])})" if row["interpretations"] else ""
        counts = f"{row['parameters']:>14,} parameters, {row['embeddings']:,} of them embeddings"
        print(f"{counts}: {row['checkpoint']}{interpretation}")
    return {"models": models}


def _size(path: Path, data: Path) -> Row:
    from fairseq.modules import LearnedPositionalEmbedding
    from torch import nn

    from fairseq_capsule.checkpoints.models import load_with_data
    from fairseq_capsule.options import interpretations

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
        "interpretations": interpretations(cfg.model),
    }


@command("probe", "runs/probe/checkpoint_best.pt --data data/multi30k")
@CHECKPOINTS
@split_option("test")
@JSON
def probe(checkpoints: Sequence[Path], data: Path, split: str) -> Row:
    """Measure how much of the target a trained probe predicts from what it reads of the source.

    The models are probes that were trained with the criterion bag_of_words_probe.
    """
    from fairseq_capsule.criterions.bag_of_words_probe import TOPS

    rows = [_recall(path, data, split) for path in checkpoints]
    print(f"share of a target's distinct words among the K most probable ones, mean over the sentences of {split}")
    print("  ".join([f"{'reads':8}", *(f"K = {top:<6}" for top in TOPS), "checkpoint"]))
    for row in rows:
        figures = (f"{row[f'bag_recall_{top}']:<10.4f}" for top in TOPS)
        print("  ".join([f"{row['reads']:8}", *figures, row["checkpoint"]]))
    return {"split": split, "rows": rows}


def _recall(path: Path, data: Path, split: str) -> Row:
    import torch

    from fairseq_capsule.checkpoints.models import load_criterion, load_with_data
    from fairseq_capsule.criterions.bag_of_words_probe import TOPS, BagOfWordsProbe
    from fairseq_capsule_lab.analysis.batches import batches

    model, cfg, task = load_with_data(path, data)
    name = getattr(cfg.criterion, "_name", cfg.criterion)
    if name != "bag_of_words_probe":
        raise UserError(f"{path}: trained with {name}; give a model trained with bag_of_words_probe")
    criterion: BagOfWordsProbe = load_criterion(path, cfg, task)
    totals = dict.fromkeys((f"bag_recall_{top}" for top in TOPS), 0.0)
    sentences = 0
    for sample in batches(path, task, split, f"probe {path.name}"):
        with torch.no_grad():
            _, count, log = criterion(model, sample)
        sentences += count
        for name in totals:
            totals[name] += float(log[name])
    means = {name: total / sentences for name, total in totals.items()}
    return {"checkpoint": str(path), "reads": criterion.reads, "sentences": sentences, **means}
