"""Systems for the benchmarks: models of an architecture and its baseline, batches, and beam search."""

import itertools
import math
from argparse import Namespace
from dataclasses import fields
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import torch
import yaml
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from fairseq.models import MODEL_DATACLASS_REGISTRY, build_model
from fairseq.optim import FP16Optimizer
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf

from fairseq_capsule.criterions import RoutingLossesCriterion
from fairseq_capsule.criterions.routing_losses import RoutingLossesConfig

# Mean and standard deviation of the logarithm of a sentence's number of subwords. Multi30k: measured in its training
# sentences, with 10,000 joint merges and the end of sentence. wmt14: chosen, for a mean of 27 words.
LOG_LENGTHS = {"multi30k": (2.68, 0.31), "wmt14": (3.15, 0.55)}
LONGEST = 100


def build_task(vocabulary: int) -> TranslationTask:
    dictionary = Dictionary()
    for index in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    return TranslationTask(TranslationConfig(), dictionary, dictionary)


def build(arch: str, task: TranslationTask, **options) -> torch.nn.Module:
    return build_model(Namespace(**{"criterion": None, **options, "arch": arch}), task)


def preset_options(arch: str, **options) -> Dict[str, object]:
    """Return the options of an architecture. A baseline uses the options with the same names."""
    kind = MODEL_DATACLASS_REGISTRY[arch]
    texts = {item.name for item in fields(kind) if item.type is str}  # a set of layers may be one number
    options = {name: str(value) if name in texts else value for name, value in options.items()}
    preset = kind(share_all_embeddings=True, **options)
    values = {**vars(preset), **(vars(preset.lstm_options()) if hasattr(preset, "lstm_options") else {})}
    return {name: value for name, value in values.items() if value is not None and name != "_name"}


def option(text: str) -> Tuple[str, Union[bool, int, float, str]]:
    """Parse `NAME=VALUE`, an option of an architecture. An argparse type."""
    name, _, value = text.partition("=")
    return name, yaml.safe_load(value)


def mechanisms_off(arch: str) -> Dict[str, object]:
    """Return options that turn off all mechanisms of an architecture. Empty if it has none, as in fairseq's models."""
    from fairseq_capsule.mechanisms.registry import options_off  # builds.py compares with a build that has it elsewhere

    return options_off(MODEL_DATACLASS_REGISTRY[arch])


def baseline_of(arch: str) -> str:
    """Return the architecture of fairseq that is the baseline of an architecture of this package."""
    return "lstm" if arch.endswith("_lstm") else "transformer"


def baseline_options(arch: str, **further) -> Dict[str, object]:
    """Return the options of a fairseq model with the size of an architecture.

    They are the options of the architecture, updated by `further`. For `capsnmt` and `simple_aggregation` they are
    those of the Transformer preset with the same size.
    """
    if arch.startswith(("capsnmt", "simple_aggregation")):
        size = arch.rpartition("_")[2] if arch != "capsnmt" else "base"
        return preset_options(f"capsule_transformer_{size}")
    return preset_options(arch, **further)


def guided_weights(options: Dict[str, object]) -> Dict[str, float]:
    """Return the weights of the guided losses: 1 if the architecture has the head of the loss, otherwise 0."""
    heads = options.get("guided_heads", "none")
    return {f"{loss}_weight": float(heads in (loss, "both")) for loss in ("bow", "bca")}


def build_criterion(task: TranslationTask, options: Dict[str, object], **further) -> torch.nn.Module:
    """Build the training loss of an architecture with these options. `further` are options of its guided losses."""
    smoothed: Dict[str, Any] = {"sentence_avg": False, "label_smoothing": 0.1}
    weights = guided_weights(options)
    if not any(weights.values()):
        return LabelSmoothedCrossEntropyCriterion(task, **smoothed)
    return RoutingLossesCriterion(task, RoutingLossesConfig(**smoothed, **weights, **further))


def draw_pairs(task: TranslationTask, length: int, lengths_of: str = "multi30k") -> Iterator[Dict[str, torch.Tensor]]:
    """Yield pairs of random words without end. With `length` 0 they have a corpus's lengths, otherwise this length."""
    words = len(task.source_dictionary) - task.source_dictionary.nspecial
    mean, deviation = (math.log(length), 0.0) if length else LOG_LENGTHS[lengths_of]
    for identity in itertools.count():
        common = torch.randn(1)
        lengths = (mean + deviation * (0.9 * common + 0.44 * torch.randn(2))).exp().round().int()
        lengths = lengths.clamp(3, max(length, LONGEST))
        source, target = (task.source_dictionary.nspecial + torch.randint(words, (n,)) for n in lengths.tolist())
        yield {"id": identity, "source": source, "target": target}


def collated(task: TranslationTask, pairs: List[Dict[str, torch.Tensor]], device: str) -> dict:
    """Collate a batch as fairseq does, with sources padded on the left and targets on the right."""
    pad, eos = task.source_dictionary.pad(), task.source_dictionary.eos()
    batch = collate(pairs, pad, eos, left_pad_source=True, left_pad_target=False)
    return utils.move_to_cuda(batch) if device == "cuda" else batch


def build_sentences(
    task: TranslationTask, number: int, length: int, device: str, lengths_of: str = "multi30k"
) -> List[dict]:
    """Return batches of one sentence each."""
    return [collated(task, [pair], device) for pair in itertools.islice(draw_pairs(task, length, lengths_of), number)]


def build_batches(
    task: TranslationTask, max_tokens: int, number: int, length: int, device: str, lengths_of: str = "multi30k"
) -> List[dict]:
    """Return batches of sentences of similar length, in fairseq's order: from the shortest source to the longest."""
    pairs, total = [], 0
    for pair in draw_pairs(task, length, lengths_of):
        pairs.append(pair)
        total += max(len(pair["source"]), len(pair["target"]))
        if total >= 1.1 * number * max_tokens:
            break
    pairs.sort(key=lambda pair: (len(pair["source"]), len(pair["target"])))
    batches, batch, longest = [], [], 0
    for pair in pairs:
        longest = max(longest, len(pair["source"]), len(pair["target"]))
        if longest * (len(batch) + 1) > max_tokens:
            batches += [batch] if batch else []
            batch, longest = [], max(len(pair["source"]), len(pair["target"]))
        batch.append(pair)
    batches = batches or [batch]
    chosen = torch.linspace(0, len(batches) - 1, number).round().long().tolist()
    return [collated(task, batches[index], device) for index in chosen]


PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Training:
    """One pass over the batches: forward, backward, clipping, Adam.

    In fp16 and bf16 the optimizer is fairseq's, as in its trainer. It keeps the parameters in float32 too.
    """

    def __init__(self, model, criterion, batches, precision: str = "float32"):
        self.model = model.to(PRECISIONS[precision]).train()
        self.batches = batches
        self.criterion = criterion
        if precision in ("fp16", "bf16"):
            self.optimizer = half_precision_optimizer(list(model.parameters()), precision)
        else:
            self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))

    def __call__(self):
        for batch in self.batches:
            self.step(batch)

    def step(self, batch: dict) -> None:
        self.optimizer.zero_grad()
        loss, sample_size, _ = self.criterion(self.model, batch)
        if not isinstance(self.optimizer, FP16Optimizer):
            (loss / sample_size).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
            self.optimizer.step()
            return
        self.optimizer.backward(loss)
        self.optimizer.multiply_grads(1 / sample_size)
        try:
            self.optimizer.clip_grad_norm(10.0)
            self.optimizer.step()
        except OverflowError:  # fairseq halves the loss scale and skips the update
            self.optimizer.zero_grad()


def half_precision_optimizer(parameters: List[torch.nn.Parameter], precision: str) -> FP16Optimizer:
    """Build Adam as fairseq's trainer does for `--fp16` or `--bf16`, with the defaults of their options."""
    cfg = {
        "optimizer": {
            "_name": "adam",
            "lr": [1e-4],
            "adam_betas": "(0.9, 0.98)",
            "adam_eps": 1e-8,
            "weight_decay": 0.0,
        },
        "common": {
            "tpu": False,
            "bf16": precision == "bf16",
            "fp16_init_scale": 128,
            "fp16_scale_window": None,
            "fp16_scale_tolerance": 0.0,
            "threshold_loss_scale": None,
            "min_loss_scale": 1e-4,
            "model_parallel_size": 1,
        },
        "optimization": {"update_freq": [1]},
        "distributed_training": {"distributed_world_size": 1},
    }
    return FP16Optimizer.build_optimizer(OmegaConf.create(cfg), parameters)


class Generation:
    """Beam search over batches. A hypothesis has `steps` words, or the length of the batch's longest reference."""

    def __init__(self, model, task, batches, beam, steps: Optional[int] = None):
        self.model = model.eval()
        model.make_generation_fast_()
        self.batches = batches
        self.generators = [
            SequenceGenerator(
                [model],
                task.target_dictionary,
                beam_size=beam,
                max_len_b=steps or b["target"].size(1),
                min_len=steps or b["target"].size(1),
            )
            for b in batches
        ]

    def __call__(self):
        for generator, batch in zip(self.generators, self.batches):
            generator.generate([self.model], batch)
