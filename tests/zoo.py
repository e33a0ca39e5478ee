"""Every registered architecture of the package, small, with the options that its tests go through."""

from argparse import Namespace
from typing import Optional

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY, build_model
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_capsule.criterions import GuidedLossesCriterion  # importing anything of the package registers all

ARCHITECTURES = sorted(
    name for name in MODEL_DATACLASS_REGISTRY if MODEL_REGISTRY[name].__module__.startswith("fairseq_capsule.")
)

SMALL = {
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
    "global_capsules": 4,
}

# Beside the architectures as they are: every option that changes what is computed.
OPTIONS = [
    ("capsule_transformer", {"encoder_routing": "vertical", "decoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing": "horizontal", "decoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing": "none", "decoder_routing": "none"}),
    ("capsule_transformer", {"encoder_routing_layers": "2"}),
    ("capsule_transformer", {"routing_iterations": 1}),
    ("capsule_transformer", {"routing_iterations": 2, "share_all_embeddings": True}),
    ("capsule_transformer", {"encoder_normalize_before": True, "decoder_normalize_before": True}),
    ("capsule_transformer", {"attention_dropout": 0.1, "dropout": 0.1, "activation_dropout": 0.1}),
    ("capsule_transformer", {"checkpoint_activations": True}),
    ("capsule_transformer", {"decoder_routing": "none", "layernorm_embedding": True}),
    ("capsule_transformer", {"encoder_attention_heads": 16, "decoder_attention_heads": 16}),  # rank 2: factors pay
    ("capsule_transformer", {"past_future": "gdr", "guided_heads": "both"}),  # both mechanisms in one model
    ("gdr_transformer_base", {"past_future": "clf"}),
    ("gdr_transformer_base", {"past_future": "clf", "redundant_capsules": 0, "guided_heads": "bow"}),
    ("gdr_transformer_base", {"past_future": "attn"}),
    ("gdr_transformer_base", {"redundant_capsules": 0, "guided_heads": "bca"}),
    ("gdr_transformer_base", {"past_future_iterations": 1, "guided_heads": "none"}),
    ("gdr_transformer_base", {"past_future_capsules": 1, "past_future_capsule_dim": 5, "past_future_ffn_dim": 9}),
    ("gdr_transformer_base", {"past_future_iterations": 2, "share_all_embeddings": True, "decoder_output_dim": 32}),
    ("gdr_transformer_base", {"encoder_normalize_before": True, "decoder_normalize_before": True}),
    ("gret_transformer_base", {"global_representation": "mean"}),
    ("gret_transformer_base", {"global_representation": "mean", "global_aggregation": "none", "global_gate": "none"}),
    ("gret_transformer_base", {"global_aggregation": "none"}),
    ("gret_transformer_base", {"global_gate": "none"}),
    ("gret_transformer_base", {"global_pooling": "mean", "global_capsules": 5}),
    ("gret_transformer_base", {"global_pooling": "concat", "global_capsules": 48, "global_capsule_dim": 3}),
    ("gret_transformer_base", {"global_iterations": 1, "encoder_normalize_before": True}),
    # all three mechanisms in one model
    ("capsule_transformer", {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}),
    ("capsnmt", {"decoder_context": "concat", "leaky_softmax": True}),
    ("capsnmt", {"aggregation_weights": "shared", "aggregation_positions": "none", "aggregation_scoring": "votes"}),
    ("capsnmt", {"aggregation_positions": "none", "aggregation_scoring": "votes", "share_all_embeddings": True}),
    ("capsnmt", {"aggregation_scoring": "votes", "aggregation_capsules": 3, "aggregation_iterations": 2}),
    ("capsnmt", {"aggregation_scale": 1.0, "aggregation_positions": "result"}),
    ("capsnmt", {"aggregation_iterations": 1, "decoder_layers": 1, "encoder_layers": 1}),
    ("simple_aggregation_tiny", {"decoder_context": "concat"}),
    ("gdr_lstm", {"encoder_directions": 1, "encoder_hidden_size": 20, "share_all_embeddings": True}),
    ("gdr_lstm", {"decoder_out_embed_dim": 24, "encoder_layers": 1, "decoder_layers": 1}),
    ("gdr_lstm", {"past_future": "attn", "guided_heads": "bca"}),
]

# For each architecture of fairseq's families the options that leave nothing of ours, and the model of fairseq's that it
# then is.
NOTHING = {
    **{"encoder_routing": "none", "decoder_routing": "none", "past_future": "none", "guided_heads": "none"},
    "global_representation": "none",
}
OFF = dict.fromkeys([arch for arch in ARCHITECTURES if "transformer" in arch], (NOTHING, "transformer"))
LSTMS = [arch for arch in ARCHITECTURES if arch.endswith("lstm")]
OFF.update({arch: ({"past_future": "none", "guided_heads": "none"}, "lstm") for arch in LSTMS})

CASES = [(arch, {}) for arch in ARCHITECTURES] + OPTIONS


def case_name(value):
    return value if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items()) or "preset"


def make_task(words: int = 40) -> TranslationTask:
    dictionary = Dictionary()
    for index in range(words):
        dictionary.add_symbol(f"w{index}")
    return TranslationTask(TranslationConfig(), dictionary, dictionary)


def build(arch: str, options: Optional[dict] = None, task: TranslationTask = None, seed: int = 1) -> torch.nn.Module:
    """The architecture at width 32 with 2+2 layers, its parameters shaken so that none is zero."""
    names = MODEL_DATACLASS_REGISTRY[arch].__dataclass_fields__
    small = {name: value for name, value in SMALL.items() if name in names}
    torch.manual_seed(seed)
    model = build_model(Namespace(arch=arch, **{**small, **(options or {})}), task or make_task())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
            if parameter.dim() == 2 and len(parameter) == len(model.encoder.dictionary):
                parameter[model.encoder.dictionary.pad()] = 0
    return model.eval()


def make_criterion(model: torch.nn.Module, task: TranslationTask) -> torch.nn.Module:
    """The criterion that a model is trained with: with every guided loss that it has the head of."""
    part = getattr(model.decoder, "past_future", None)
    weights = {f"{name}_weight": float(getattr(part, name, None) is not None) for name in ("bow", "bca")}
    if not any(weights.values()):
        return LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
    return GuidedLossesCriterion(task, sentence_avg=False, label_smoothing=0.1, **weights)


def logits_of(model: torch.nn.Module, batch: dict) -> torch.Tensor:
    with torch.no_grad():
        return model(**batch["net_input"])[0]


def encode(model: torch.nn.Module, batch: dict):
    """A batch's encoder output `[B, I, C]` and its padding mask `[B, I]`."""
    encoded = model.encoder(batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"])
    if isinstance(encoded, tuple):  # fairseq's LSTM encoder
        return encoded[0].transpose(0, 1), encoded[3].t()
    return encoded["encoder_out"][0].transpose(0, 1), encoded["encoder_padding_mask"][0]


def make_sentences(lengths, words: int = 40, seed: int = 3):
    """Samples whose source and target have the given numbers of words."""
    generator = torch.Generator().manual_seed(seed)
    first = Dictionary().nspecial
    return [
        {
            "id": index,
            "source": torch.cat(
                [torch.randint(first, first + words, (source,), generator=generator), torch.tensor([2])]
            ),
            "target": torch.cat(
                [torch.randint(first, first + words, (target,), generator=generator), torch.tensor([2])]
            ),
        }
        for index, (source, target) in enumerate(lengths)
    ]


def make_batch(sentences, left_pad_source: bool = True, pad_to: int = 0) -> dict:
    pad_to = {"source": pad_to, "target": pad_to} if pad_to else None
    return collate(
        list(sentences),
        pad_idx=1,
        eos_idx=2,
        left_pad_source=left_pad_source,
        left_pad_target=False,
        pad_to_length=pad_to,
    )


LENGTHS = [(7, 5), (1, 9), (12, 2), (5, 8)]
