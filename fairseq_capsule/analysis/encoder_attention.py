"""What an encoder's self-attention looks at, before and after routing (Duan et al. 2020, Fig. 5)."""

from typing import List

import torch
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.routing_attention import Explanation, RoutingSelfAttention


@torch.no_grad()
def encoder_attention(model: torch.nn.Module, src_tokens: Tensor) -> List[Explanation]:
    """Recompute each encoder layer's attention of a batch, in eval mode.

    Args:
        model: a Transformer of fairseq's or of this package.
        src_tokens: `[B, L]`, padded on either side.

    Returns:
        An `Explanation` a layer; one that does not route has `before` equal to `after` and no capsules.

    Raises:
        UserError: the model's encoder is no Transformer.
    """
    encoder = model.encoder
    if not isinstance(encoder, TransformerEncoderBase):
        raise UserError(f"a {type(encoder).__name__} has no self-attention to show")
    training = model.training
    model.eval()
    lengths = src_tokens.ne(encoder.padding_idx).sum(1)
    states = encoder(src_tokens, lengths, return_all_hiddens=True)["encoder_states"]
    mask = src_tokens.eq(encoder.padding_idx)
    explanations = [_explain(layer, state, mask) for layer, state in zip(encoder.layers, states)]
    model.train(training)
    return explanations


def _explain(layer: torch.nn.Module, x: Tensor, mask: Tensor) -> Explanation:
    if layer.normalize_before:
        x = layer.self_attn_layer_norm(x)
    if isinstance(layer.self_attn, RoutingSelfAttention):
        return layer.self_attn.explain(x, mask)
    # Given an incremental state, fairseq's attention goes through its own code, which returns weights a head.
    _, weights = layer.self_attn(x, x, x, key_padding_mask=mask, incremental_state={}, need_head_weights=True)
    weights = weights.transpose(0, 1)
    return Explanation(before=weights, after=weights, logits=None, vertical=None, horizontal=None)
