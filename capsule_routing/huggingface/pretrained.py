"""Translation models of transformers as models of this package: the same logits, to which mechanisms can be added."""

from os import PathLike
from typing import Any, Dict, Union

from transformers import AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.utils import logging

from capsule_routing.errors import UserError
from capsule_routing.huggingface.configuration import CapsuleConfig

logger = logging.get_logger(__name__)

# What each class computes, in options of `CapsuleConfig`. The keys are `config.model_type`.
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True, "padding_has_positions": True}
CLASSES: Dict[str, Dict[str, Any]] = {
    "fsmt": {},
    "marian": {"sinusoids": "marian", "padding_has_positions": True},
    "m2m_100": PRE_NORM,  # NLLB-200 too
    "bart": {**LEARNED, "layernorm_embedding": True},
    "mbart": {**PRE_NORM, **LEARNED, "layernorm_embedding": True},
}
# Options with the same meaning under another name.
NAMES = {
    "activation": "activation_function",
    "encoder_embed_dim": "d_model",
    "encoder_ffn_embed_dim": "encoder_ffn_dim",
    "decoder_ffn_embed_dim": "decoder_ffn_dim",
    "max_source_positions": "max_position_embeddings",
    "max_target_positions": "max_position_embeddings",
    **{
        name: name
        for name in ("dropout", "attention_dropout", "activation_dropout", "encoder_layers", "decoder_layers")
    },
    **{name: name for name in ("encoder_attention_heads", "decoder_attention_heads")},
    **{name: name for name in ("bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id")},
}
# Options of training that have no counterpart, with the value that turns them off.
DROPPED = {"encoder_layerdrop": 0, "decoder_layerdrop": 0}


def plain_model(original: Union[str, "PathLike[str]", PreTrainedModel], model_class: Any) -> Any:
    """Return a translation model, or the one of a folder, as a plain `model_class` in float32 with the same logits.

    Raises:
        UserError: it is no model of these classes, lacks a parameter, or has an option or a parameter that cannot be
            expressed.
    """
    if isinstance(original, PreTrainedModel):
        return _converted(original, model_class)
    loaded, report = AutoModelForSeq2SeqLM.from_pretrained(original, output_loading_info=True)
    if report["missing_keys"]:  # transformers fills them with random numbers
        names = ", ".join(sorted(report["missing_keys"]))
        raise UserError(f"{original} has no {names}; tie_word_embeddings of its config.json may be wrong")
    return _converted(loaded, model_class)


def _converted(original: Any, model_class: Any) -> Any:
    if original.config.model_type not in CLASSES:
        known = ", ".join(CLASSES)
        raise UserError(f"a {type(original).__name__} is no translation model of a known class: {known}")
    for name, off in DROPPED.items():
        if getattr(original.config, name, off) != off:
            logger.warning(f"{name} {getattr(original.config, name)} is dropped: it has no counterpart")
    state = parameters(original)
    model = model_class(CapsuleConfig(**options(original, state)))
    missing, unknown = model.load_state_dict(state, strict=False)
    if missing or unknown:
        raise UserError(f"the parameter {[*unknown, *missing][0]} of a {type(original).__name__} cannot be expressed")
    model.generation_config = original.generation_config
    return model.to(original.device).train(original.training)


def options(original: PreTrainedModel, state: Dict[str, Any]) -> Dict[str, Any]:
    """Return the options of `CapsuleConfig` for a model with these parameters, in our names."""
    config = original.config
    if config.decoder_start_token_id is None:
        raise UserError("decoder_start_token_id of the model is None; set it, for mBART to the target language's token")
    found = {ours: getattr(config, theirs) for ours, theirs in NAMES.items()}
    found.update(CLASSES[config.model_type], no_scale_embedding=not config.scale_embedding)
    if found.get("encoder_learned_pos") and config.pad_token_id != 1:
        raise UserError(f"learned positions start after that of <pad>, which must be 1, not {config.pad_token_id}")
    source, target = (state[f"{side}.embed_tokens.weight"] for side in ("encoder", "decoder"))
    output = state["decoder.output_projection.weight"]
    return {
        **found,
        "source_vocab_size": len(source),
        "vocab_size": len(target),
        "share_decoder_input_output_embed": output is target,
        "share_all_embeddings": output is target and target is source,
        "output_bias": "decoder.output_projection.bias" in state,
    }


def parameters(original: PreTrainedModel) -> Dict[str, Any]:
    """Return its parameters by our names; a shared one is the same object under each name."""
    found: Dict[str, Any] = {}
    learned = "encoder_learned_pos" in CLASSES[original.config.model_type]  # other positions are computed
    for name, value in original.named_parameters(remove_duplicate=False):
        name = name.removeprefix("model.").replace("lm_head.", "decoder.output_projection.")
        if name != "shared.weight" and (learned or "embed_positions" not in name):
            found[name] = value
    bias = getattr(original, "final_logits_bias", None)
    if bias is not None:
        found["decoder.output_projection.bias"] = bias[0]
    return found
