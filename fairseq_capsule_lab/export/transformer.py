"""What the exports of a Transformer have in common."""

from typing import Any, List, Optional

from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerModel

from fairseq_capsule.mechanisms.attaching import parts_of
from fairseq_capsule.mechanisms.base import Mechanism
from fairseq_capsule.mechanisms.registry import mechanisms
from fairseq_capsule.models import CapsuleTransformerModel
from fairseq_capsule.options import option

# Options of fairseq for which a plain Transformer has no counterpart.
UNSUPPORTED = (
    *("adaptive_input", "adaptive_softmax_cutoff", "base_layers", "cross_self_attention", "no_cross_attention"),
    *("no_token_positional_embeddings", "quant_noise_pq", "quant_noise_scalar"),
    *("encoder_xformers_att_config", "decoder_xformers_att_config"),
)


def refusal(model: BaseFairseqModel, activations: Any) -> Optional[str]:
    """Return why a model is no Transformer with a known activation and supported options, or None if it is one."""
    # fairseq's subclasses of its Transformer compute something else.
    if type(model) is not TransformerModel and not isinstance(model, CapsuleTransformerModel):
        return f"it is a {type(model).__name__}, not a Transformer"
    if model.cfg.activation_fn not in activations:
        return f"--activation-fn {model.cfg.activation_fn} is none of {', '.join(activations)}"
    return next((f"it was trained with {option(name)}" for name in UNSUPPORTED if getattr(model.cfg, name)), None)


def mechanisms_in(model: BaseFairseqModel) -> List[Mechanism]:
    """Return the mechanisms that have parts in a model, in the order of computation."""
    return [mechanism for mechanism in mechanisms() if any(True for _ in parts_of(model, mechanism))]
