"""Small models, batches and criterions for tests of an architecture."""

from argparse import Namespace
from types import MappingProxyType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Type

import torch
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY, FairseqCriterion
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_DATACLASS_REGISTRY, BaseFairseqModel, build_model
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from capsule_routing.errors import UserError
from fairseq_capsule.criterions.routing_losses import NAME
from fairseq_capsule.mechanisms import registry
from fairseq_capsule.mechanisms.attaching import loss_heads
from fairseq_capsule.mechanisms.base import Mechanism
from fairseq_capsule.mechanisms.registry import mechanisms
from fairseq_capsule.models.outputs import encoder_states
from fairseq_capsule.models.parts import changed_parameters

Options = Mapping[str, Any]
PRESET: Options = MappingProxyType({})  # only the options of the preset
WORDS = 40  # words of the artificial language
SIZES = {
    "encoder_embed_dim": 32,
    "encoder_ffn_embed_dim": 48,
    "encoder_attention_heads": 4,
    "encoder_layers": 2,
    "decoder_embed_dim": 32,
    "decoder_ffn_embed_dim": 48,
    "decoder_attention_heads": 4,
    "decoder_layers": 2,
    "dropout": 0.0,
    "decoder_out_embed_dim": 32,
    "global_capsules": 4,  # the preset has 32, which would have a size of 1
}
LENGTHS = [(7, 5), (1, 9), (12, 2), (5, 8)]  # words in the sources and targets of a batch


def make_task(words: int = WORDS) -> TranslationTask:
    """Return a translation task with dictionaries of `words` words."""
    dictionary = Dictionary()
    for index in range(words):
        dictionary.add_symbol(f"w{index}")
    return TranslationTask(TranslationConfig(), dictionary, dictionary)


def config_of(arch: str) -> Type[FairseqDataclass]:
    """Return the dataclass of an architecture's options. Raises a UserError if it is not registered."""
    if arch not in MODEL_DATACLASS_REGISTRY:
        raise UserError(f"unknown architecture {arch}; import the package that defines it")
    return MODEL_DATACLASS_REGISTRY[arch]


def small_options(arch: str, options: Mapping[str, Any] = {}) -> Dict[str, Any]:
    """Return the options of `SIZES` that the architecture has, updated by `options`."""
    names = config_of(arch).__dataclass_fields__
    return {**{name: value for name, value in SIZES.items() if name in names}, **options}


def build_small(
    arch: str, options: Options = PRESET, task: Any = None, seed: int = 1, noise: float = 0.1
) -> BaseFairseqModel:
    """Build the architecture with width 32 and 2+2 layers, in eval mode, with noise so that no parameter is zero."""
    torch.manual_seed(seed)
    model = build_model(Namespace(arch=arch, **small_options(arch, options)), task or make_task())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
            if parameter.dim() == 2 and len(parameter) == len(model.encoder.dictionary):
                parameter[model.encoder.dictionary.pad()] = 0
    return model.eval()


def with_options(model: BaseFairseqModel, arch: str, options: Options) -> BaseFairseqModel:
    """Return a model with other options, and with the parameters of `model` that have the same name and shape."""
    other = build_small(arch, options)
    own, given = other.state_dict(), model.state_dict()
    same = [name for name in own.keys() & given.keys() if own[name].shape == given[name].shape]
    other.load_state_dict({**own, **{name: given[name] for name in same}})
    return other


def without(mechanism: Mechanism, model: BaseFairseqModel, arch: str, options: Options) -> BaseFairseqModel:
    """Return the model without a mechanism, with the same other parameters."""
    off = with_options(model, arch, {**options, **registry.off(mechanism)})
    missing = sorted(off.state_dict().keys() - model.state_dict().keys() - changed_parameters(model)[1])
    assert not missing, f"{mechanism.name} removes parameters of the model: {missing}"
    return off


def criterion_of(model: BaseFairseqModel) -> Tuple[str, Dict[str, float]]:
    """Return the criterion that computes the losses of a model's mechanisms, and its options that turn them on."""
    losses = [name for _, name, _ in loss_heads(model)]
    if not losses:
        return "label_smoothed_cross_entropy", {}
    known = CRITERION_DATACLASS_REGISTRY[NAME].__dataclass_fields__
    weights = [f"{name}_weight" for mechanism in mechanisms() for name in mechanism.loss_weights]
    return NAME, {weight: float(weight.removesuffix("_weight") in losses) for weight in weights if weight in known}


def make_criterion(model: BaseFairseqModel, task: Optional[TranslationTask] = None) -> FairseqCriterion:
    """Build the criterion of `criterion_of`, with label smoothing."""
    name, losses = criterion_of(model)
    config = CRITERION_DATACLASS_REGISTRY[name](sentence_avg=False, label_smoothing=0.1, **losses)
    return CRITERION_REGISTRY[name].build_criterion(config, task or make_task())


def logits_of(model: BaseFairseqModel, batch: Mapping[str, Any]) -> Tensor:
    """Return the logits of a batch `[B, T, V]`, without gradients."""
    with torch.no_grad():
        return model(**batch["net_input"])[0]


def word_logits(model: BaseFairseqModel, batch: Mapping[str, Any]) -> Tensor:
    """Return the logits of the words. Those of padding differ between fairseq's attention and ours."""
    return logits_of(model, batch)[batch["target"].ne(model.decoder.dictionary.pad())]


def is_close(left: Tensor, right: Tensor) -> bool:
    """Return whether two results differ by rounding alone."""
    return torch.allclose(left, right, rtol=5e-6, atol=5e-6)


def encode(model: BaseFairseqModel, batch: Mapping[str, Any]) -> Tuple[Tensor, Tensor]:
    """Return the encoder output of a batch `[B, I, C]` and its padding mask `[B, I]` (True marks padding)."""
    return encoder_states(model.encoder(batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]))


def make_sentences(lengths: Iterable[Tuple[int, int]] = LENGTHS, words: int = WORDS, seed: int = 3) -> List[Any]:
    """Return samples with random words. `lengths` are the numbers of words in source and target, without the end."""
    generator = torch.Generator().manual_seed(seed)
    first = Dictionary().nspecial

    def draw(number: int) -> Tensor:
        return torch.cat([torch.randint(first, first + words, (number,), generator=generator), torch.tensor([2])])

    return [
        {"id": index, "source": draw(source), "target": draw(target)} for index, (source, target) in enumerate(lengths)
    ]


def make_batch(sentences: Iterable[Mapping[str, Any]], left_pad_source: bool = True, pad_to: int = 0) -> Dict[str, Any]:
    """Collate samples as fairseq does, optionally padded to at least `pad_to` columns."""
    longest = {"source": pad_to, "target": pad_to} if pad_to else None
    return collate(list(sentences), pad_idx=1, eos_idx=2, left_pad_source=left_pad_source, pad_to_length=longest)
