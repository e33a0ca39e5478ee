"""A Transformer of fairseq or of this package, with any of the package's mechanisms, as one of Hugging Face."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import torch
from fairseq.models import BaseFairseqModel
from transformers.utils import logging

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration, CapsuleTokenizer
from capsule_routing.huggingface.tokenization import FILES
from capsule_routing.text.preparation import TextPreparation
from fairseq_capsule.mechanisms import ON_TRANSFORMERS
from fairseq_capsule_lab.export import transformer
from fairseq_capsule_lab.export.model_card import CardFacts, model_card

NAME = "transformers"
Sides = Tuple[TextPreparation, TextPreparation]  # of source and target
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_accurate": "gelu_pytorch_tanh",
    "gelu_fast": "gelu_pytorch_tanh",
    "tanh": "tanh",
    "linear": "linear",
}
IGNORED = ("encoder.version", "decoder.version")  # names in the state of a fairseq model that are no parameters


def refusal(model: BaseFairseqModel) -> Optional[str]:
    """Return why a model cannot be exported, or None if it can."""
    reason = transformer.refusal(model, ACTIVATIONS)
    if reason is not None:
        return reason
    others = [mechanism.name for mechanism in transformer.mechanisms_in(model) if mechanism not in ON_TRANSFORMERS]
    return f"it contains {', '.join(others)}, a mechanism of another package" if others else None


def write(
    model: BaseFairseqModel, task: Any, sides: Sides, folder: Path, facts: CardFacts, dtype: Optional[str] = None
) -> None:
    """Write a model that `refusal` accepts into a new folder, with its tokenizer and a model card.

    Args:
        task: has the dictionaries.
        sides: how the text of source and target was prepared.
        facts: for the model card.
        dtype: float16 or bfloat16; by default that of the model.

    Raises:
        UserError: see `model_card`.
    """
    card = model_card(model, sides, facts)
    logging.disable_progress_bar()
    copy = exported(model)
    if dtype:
        copy = copy.to(getattr(torch, dtype))
    copy.save_pretrained(folder)
    of_both = tokenizer(task, sides, folder)
    of_both.model_max_length = min(model.cfg.max_source_positions, model.cfg.max_target_positions)
    of_both.save_pretrained(folder)
    (folder / "README.md").write_text(card, encoding="utf-8")
    for weights in folder.glob("*.safetensors"):  # safetensors lets only the owner read them
        shutil.copymode(folder / "README.md", weights)


def tokenizer(task: Any, sides: Sides, folder: Path) -> CapsuleTokenizer:
    """Return the tokenizer. Its files are written into the folder."""
    source, target = task.source_dictionary, task.target_dictionary
    files = {"vocabulary": str(folder / FILES["vocabulary"])}
    with open(files["vocabulary"], "w", encoding="utf-8") as vocabulary:
        json.dump({"source": source.symbols, "target": target.symbols}, vocabulary, ensure_ascii=False)
    first, second = sides
    if first.codes:
        name = "pieces" if first.subwords == "sentencepiece" else "codes"
        files[name] = str(shutil.copyfile(first.codes, folder / FILES[name]))
        if second.codes != first.codes:
            files[f"target_{name}"] = str(shutil.copyfile(second.codes, folder / FILES[f"target_{name}"]))
    return CapsuleTokenizer(
        **files,
        source=dataclasses.asdict(dataclasses.replace(first, codes="")),  # the tokenizer knows its own file
        target=dataclasses.asdict(dataclasses.replace(second, codes="")),
        **{f"{name}_token": source[getattr(source, name)()] for name in ("bos", "pad", "eos", "unk")},
    )


def exported(model: BaseFairseqModel) -> CapsuleForConditionalGeneration:
    """Return a copy of a model that `refusal` accepts, in eval mode and in the precision of the model."""
    copy = CapsuleForConditionalGeneration(configuration(model))
    state = {name: value for name, value in model.state_dict().items() if not name.startswith(IGNORED)}
    copy.load_state_dict(state)
    return copy.to(next(model.parameters()).dtype).eval()


def configuration(model: BaseFairseqModel) -> CapsuleConfig:
    """Return the configuration of a model that `refusal` accepts."""
    options: Dict[str, Any] = {
        name: getattr(model.cfg, name) for name in CapsuleConfig.__dataclass_fields__ if hasattr(model.cfg, name)
    }
    options = {name: value for name, value in options.items() if value is not None}
    encoder, decoder = model.encoder, model.decoder
    words = decoder.dictionary
    routed = [number for number, layer in enumerate(encoder.layers, 1) if hasattr(layer.self_attn, "routing")]
    if not routed:  # all layers that route were pruned
        options["encoder_routing"] = "none"
    return CapsuleConfig(
        **{
            **options,
            "source_vocab_size": len(encoder.dictionary),
            "vocab_size": len(words),
            "encoder_layers": len(encoder.layers),
            "decoder_layers": len(decoder.layers),
            "encoder_routing_layers": routed,
            "decoder_input_dim": decoder.embed_tokens.embedding_dim,
            "decoder_output_dim": decoder.output_embed_dim,
            "activation": ACTIVATIONS[model.cfg.activation_fn],
            "bos_token_id": words.bos(),
            "pad_token_id": words.pad(),
            "eos_token_id": words.eos(),
            "decoder_start_token_id": words.eos(),
        }
    )
