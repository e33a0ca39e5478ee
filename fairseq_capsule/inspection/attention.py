"""The attention of any Transformer or LSTM, before and after routing (Duan et al. 2020, Fig. 5), computed again."""

from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from capsule_routing.modules import AttentionRouting
from fairseq_capsule.models.attention import SplitAttention, masked_attention
from fairseq_capsule.models.outputs import encode, evaluating

PLAIN = frozenset({"encoder_attention", "decoder_attention", "cross_attention"})  # arrays of models without a mechanism


class Explanation(NamedTuple):
    """The attention of one layer and the capsules that changed it. Each tensor is `[B, H, L, L]`; rows are queries.

    Attributes:
        before: the attention without parts that change its logits, `softmax(mask(E))`.
        after: the attention; with routing `softmax(mask(E + Ω↑ + Ω↔))`.
        vertical: `Ω↑`, or None if the layer has none.
        horizontal: `Ω↔`, or None if the layer has none.
    """

    before: Tensor
    after: Tensor
    vertical: Optional[Tensor]
    horizontal: Optional[Tensor]


def encoder_attention(model: BaseFairseqModel, src_tokens: Tensor) -> List[Explanation]:
    """Recompute the self-attention of each layer of a Transformer's encoder for a batch, in eval mode.

    Return one `Explanation` for each layer. The source tokens are `[B, L]`, padded on either side. Without routing,
    `before` equals `after` and there are no capsules.
    """
    encoder = model.encoder
    with evaluating(model):
        states = encode(model, src_tokens, return_all_hiddens=True)["encoder_states"]
        mask = src_tokens.eq(encoder.padding_idx)
        return [_explain(layer, state, mask) for layer, state in zip(encoder.layers, states)]


def decoder_attention(
    model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor
) -> List[Tuple[Optional[Explanation], Optional[Tensor]]]:
    """Recompute the attentions of each layer of a Transformer's decoder for a batch, in eval mode.

    The source tokens are `[B, L]`, padded on either side; `previous` `[B, T]` are the tokens that the decoder reads,
    starting with the end-of-sentence token.

    Returns:
        For each layer, its self-attention, or None if that also reads the source (`--cross-self-attention`); and the
        attention to the source, `[B, H, T, L]`, or None if the layer has no separate attention for it.
    """
    decoder = model.decoder
    padding = previous.eq(decoder.padding_idx)
    mask = padding if padding.any() else None  # as in fairseq's decoder
    with evaluating(model):
        encoded = encode(model, src_tokens)
        source = encoded["encoder_out"][0], encoded["encoder_padding_mask"][0]
        states = decoder.extract_features(previous, encoded)[1]["inner_states"]
        future = decoder.buffered_future_mask(states[0])
        masks = {"self_attn_mask": future, "self_attn_padding_mask": mask}
        explanations = []
        for layer, state in zip(decoder.layers, states):
            own = None if layer.cross_self_attention else _explain(layer, state, mask, future)
            cross = None
            if layer.encoder_attn is not None:
                cross = layer(state, *source, **masks, need_head_weights=True)[1].transpose(0, 1)
            explanations.append((own, cross))
        return explanations


def lstm_attention(model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor) -> Optional[Tensor]:
    """Return the attention of an LSTM decoder to the source, `[B, T, L]`, or None if it has no attention.

    The arguments are those of `decoder_attention`; the sentences are sorted by length, as fairseq's LSTM requires.
    """
    decoder = model.decoder
    needed = decoder.need_attn
    decoder.need_attn = True  # it is off in a model that is prepared for generation
    try:
        with evaluating(model):
            _, extra = decoder.extract_features(previous, encode(model, src_tokens))
    finally:
        decoder.need_attn = needed
    return extra["attn"][0] if isinstance(extra, dict) else extra


def _explain(layer: Any, x: Tensor, mask: Optional[Tensor], attn_mask: Optional[Tensor] = None) -> Explanation:
    x = attention_input(layer, x)
    if isinstance(layer.self_attn, SplitAttention):
        return explain(layer.self_attn, x, mask, attn_mask)
    # With an incremental state, fairseq's attention uses its own code, which returns weights for each head.
    _, weights = layer.self_attn(
        x, x, x, key_padding_mask=mask, incremental_state={}, need_head_weights=True, attn_mask=attn_mask
    )
    weights = weights.transpose(0, 1)
    return Explanation(before=weights, after=weights, vertical=None, horizontal=None)


def attention_input(layer: Any, state: Tensor) -> Tensor:
    """Return what the self-attention of a layer reads, for the layer's input."""
    return layer.self_attn_layer_norm(state) if layer.normalize_before else state


def self_attentions(
    model: BaseFairseqModel, source: Tensor, previous: Tensor
) -> Iterator[Tuple[str, int, Any, Tensor, Tensor]]:
    """Yield each self-attention of a Transformer that runs on a batch, with what it reads.

    That is: its side ("encoder", "decoder"), the number of its layer from 1 on, the attention, its input `[L, B, C]`
    and the padding `[B, L]`, True at padding. Tokens as in `decoder_attention`.
    """
    encoded = encode(model, source, return_all_hiddens=True)
    states = model.decoder.extract_features(previous, encoded)[1]["inner_states"]
    for side, tokens, inputs in (("encoder", source, encoded["encoder_states"]), ("decoder", previous, states)):
        padding = tokens.eq(getattr(model, side).padding_idx)
        for number, (layer, state) in enumerate(zip(getattr(model, side).layers, inputs), start=1):
            yield side, number, layer.self_attn, attention_input(layer, state), padding


@torch.no_grad()
def explain(
    attention: SplitAttention, x: Tensor, mask: Optional[Tensor], attn_mask: Optional[Tensor] = None
) -> Explanation:
    """Recompute the attention and capsules that a self-attention does not return.

    Its input `x` is `[L, B, C]`; `mask` `[B, L]` is True at padding; `attn_mask` `[L, L]` is added to the logits.
    """
    q, k, _ = attention.factors(x, mask)
    logits = q @ k.transpose(2, 3)
    routing = routing_of(attention)
    vertical = horizontal = None
    if routing is not None:
        routed = attention.changed(logits, mask, (q, k), until=routing)
        vertical, horizontal = routing.capsules(routed, mask, factors=(q, k) if routed is logits else None)
    if len(attention.changes_logits) == 1 and routing is not None:
        changed = sum((part for part in (vertical, horizontal) if part is not None), logits)
    else:
        changed = attention.changed(logits, mask, (q, k))
    before, after = (masked_attention(part, mask, attn_mask) for part in (logits, changed))
    return Explanation(before, after, vertical, horizontal)


def routing_of(attention: Any) -> Optional[AttentionRouting]:
    """Return the routing of an attention's logits, or None."""
    parts = (getattr(attention, name) for name in getattr(attention, "changes_logits", ()))
    return next((part for part in parts if isinstance(part, AttentionRouting)), None)
