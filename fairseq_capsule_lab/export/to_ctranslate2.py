"""A plain Transformer of fairseq or of this package as a specification of CTranslate2."""

import dataclasses
import json
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from ctranslate2.specs.attention_spec import MultiHeadAttentionSpec
from ctranslate2.specs.common_spec import Activation, LayerNormSpec, LinearSpec
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase

from capsule_routing.text.preparation import TextPreparation
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.export import transformer

Parameters = Dict[str, np.ndarray]

ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_accurate": Activation.GELUTanh,
    "gelu_fast": Activation.GELUTanh,
    "tanh": Activation.Tanh,
}
NAME = "CTranslate2"
CODES = {"subword-nmt": "codes", "sentencepiece": "sentencepiece.model"}  # the file in the folder


def refusal(model: BaseFairseqModel) -> Optional[str]:
    """Return why CTranslate2 cannot compute a model, or None if it can."""
    routing = transformer.mechanisms_in(model)
    if routing and isinstance(model, CapsuleTransformerModel):
        return f"it routes ({', '.join(mechanism.name for mechanism in routing)})"
    return transformer.refusal(model, ACTIVATIONS)


def write(
    model: BaseFairseqModel, task: Any, sides: Tuple[TextPreparation, TextPreparation], folder: Path, options: Namespace
) -> None:
    """Write a model that `refusal` accepts into a new folder.

    Args:
        task: has the dictionaries.
        sides: how the text of source and target was prepared.
        options: `quantization`, the type of the weights, or None.

    Raises:
        LabError: see `specification`.
    """
    spec = specification(model, task.source_dictionary, task.target_dictionary)
    source, target = sides
    codes = CODES.get(source.subwords)
    if codes:
        spec.register_file(source.codes, codes)
    spec.validate()
    spec.optimize(options.quantization)
    spec.save(str(folder))
    note = {"source": dataclasses.asdict(source), "target": dataclasses.asdict(target)}
    for side in note.values():
        side["codes"] = codes
    (folder / "text.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


def specification(model: BaseFairseqModel, source: Dictionary, target: Dictionary) -> TransformerSpec:
    """Return the specification of a model that `refusal` accepts, in float32. The caller validates and saves it.

    The source ends with `</s>`, and the target starts after `</s>`, as in fairseq.

    Raises:
        LabError: the model has a parameter that CTranslate2's Transformer does not have, or a dictionary has a word
            twice.
    """
    parameters = {
        name: parameter.detach().float().numpy().copy()  # quantisation changes the arrays
        for name, parameter in model.named_parameters(remove_duplicate=False)
    }
    encoder = TransformerEncoderSpec(**_options(model.encoder, model.cfg))
    _fill_inputs(encoder, encoder.embeddings[0], "encoder", model.encoder, parameters)
    for number, layer in enumerate(encoder.layer):
        _fill_layer(layer, f"encoder.layers.{number}", parameters)
    decoder = TransformerDecoderSpec(**_options(model.decoder, model.cfg), project_in_out=True)
    _fill_inputs(decoder, decoder.embeddings, "decoder", model.decoder, parameters)
    for number, layer in enumerate(decoder.layer):
        name = f"decoder.layers.{number}"
        _fill_layer(layer, name, parameters)
        attention = f"{name}.encoder_attn"
        _fill_attention(layer.attention, attention, [["q_proj"], ["k_proj", "v_proj"], ["out_proj"]], parameters)
        _fill_norm(layer.attention.layer_norm, f"{attention}_layer_norm", parameters)
    _fill_linear(decoder.projection, ["decoder.output_projection"], parameters)
    for projection, name in (("project_in", "project_in_dim"), ("project_out", "project_out_dim")):
        if getattr(model.decoder, name) is None:
            delattr(decoder, projection)
        else:
            _fill_linear(getattr(decoder, projection), [f"decoder.{name}"], parameters)
    if parameters:
        raise LabError(f"its parameter {min(parameters)} is unknown to CTranslate2; train a Transformer without it")
    whole = TransformerSpec(encoder, decoder)
    whole.register_source_vocabulary(_words(source))
    whole.register_target_vocabulary(_words(target))
    whole.config.decoder_start_token = whole.config.eos_token
    whole.config.add_source_eos = True
    return whole


def _options(side: Union[TransformerEncoderBase, TransformerDecoderBase], config: Any) -> Dict[str, Any]:
    first = side.layers[0]
    return {
        "num_layers": len(side.layers),
        "num_heads": first.self_attn.num_heads,
        "pre_norm": first.normalize_before,
        "no_final_norm": side.layer_norm is None,
        "activation": ACTIVATIONS[config.activation_fn],
        "layernorm_embedding": side.layernorm_embedding is not None,
    }


def _fill_inputs(spec: Any, embeddings: Any, name: str, side: Any, parameters: Parameters) -> None:
    embeddings.weight = parameters.pop(f"{name}.embed_tokens.weight")
    spec.scale_embeddings = float(side.embed_scale)
    positions = side.embed_positions
    # Sinusoids are no parameters. The first word has the position after that of padding.
    table = parameters.pop(f"{name}.embed_positions.weight", None)
    table = positions.weights.numpy() if table is None else table
    spec.position_encodings.encodings = table[positions.padding_idx + 1 :].copy()
    for norm in ("layer_norm", "layernorm_embedding"):
        if hasattr(spec, norm):
            _fill_norm(getattr(spec, norm), f"{name}.{norm}", parameters)


def _fill_layer(spec: Any, name: str, parameters: Parameters) -> None:
    """Fill what the layers of encoder and decoder have in common."""
    _fill_attention(
        spec.self_attention, f"{name}.self_attn", [["q_proj", "k_proj", "v_proj"], ["out_proj"]], parameters
    )
    _fill_norm(spec.self_attention.layer_norm, f"{name}.self_attn_layer_norm", parameters)
    _fill_linear(spec.ffn.linear_0, [f"{name}.fc1"], parameters)
    _fill_linear(spec.ffn.linear_1, [f"{name}.fc2"], parameters)
    _fill_norm(spec.ffn.layer_norm, f"{name}.final_layer_norm", parameters)


def _fill_attention(spec: MultiHeadAttentionSpec, name: str, parts: List[List[str]], parameters: Parameters) -> None:
    for linear, projections in zip(spec.linear, parts, strict=True):
        _fill_linear(linear, [f"{name}.{projection}" for projection in projections], parameters)


def _fill_linear(spec: LinearSpec, names: List[str], parameters: Parameters) -> None:
    """Fill a layer that computes one or more of fairseq's layers, whose outputs follow one another."""
    spec.weight = np.concatenate([parameters.pop(f"{name}.weight") for name in names])
    if f"{names[0]}.bias" in parameters:
        spec.bias = np.concatenate([parameters.pop(f"{name}.bias") for name in names])


def _fill_norm(spec: LayerNormSpec, name: str, parameters: Parameters) -> None:
    spec.gamma, spec.beta = parameters.pop(f"{name}.weight"), parameters.pop(f"{name}.bias")


def _words(dictionary: Dictionary) -> List[str]:
    if len(set(dictionary.symbols)) < len(dictionary.symbols):
        raise LabError("a word is twice in its dictionary (#fairseq:overwrite); train with another dictionary")
    return list(dictionary.symbols)
