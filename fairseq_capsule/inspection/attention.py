"""The attention of any Transformer or LSTM, before and after routing (Duan et al. 2020, Fig. 5).

No model stores its attention. The functions of this module compute it again.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMDecoder
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, by_layer, named, numbers, views_in_file
from fairseq_capsule.models.attention import SplitAttention, masked_attention
from fairseq_capsule.models.outputs import evaluating
from fairseq_capsule.modules import AttentionRouting

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


class DecoderExplanation(NamedTuple):
    """The attentions of one decoder layer.

    Attributes:
        own: the self-attention; None if it also reads the source (`--cross-self-attention`).
        cross: the attention to the source, `[B, H, T, L]`; None if the layer has no separate attention for it.
    """

    own: Optional[Explanation]
    cross: Optional[Tensor]


def encoder_attention(model: BaseFairseqModel, src_tokens: Tensor) -> List[Explanation]:
    """Recompute the self-attention of each encoder layer for a batch, in eval mode.

    Args:
        model: a Transformer of fairseq or of this package.
        src_tokens: `[B, L]`, padded on either side.

    Returns:
        One `Explanation` for each layer. Without routing, `before` equals `after` and there are no capsules.

    Raises:
        UserError: the model's encoder is not a Transformer.
    """
    encoder = model.encoder
    if not isinstance(encoder, TransformerEncoderBase):
        raise UserError(f"a {type(encoder).__name__} has no self-attention to show")
    mask = src_tokens.eq(encoder.padding_idx)
    with evaluating(model):
        states = encoder(src_tokens, (~mask).sum(1), return_all_hiddens=True)["encoder_states"]
        return [_explain(layer, state, mask) for layer, state in zip(encoder.layers, states)]


def decoder_attention(model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor) -> List[DecoderExplanation]:
    """Recompute the attentions of each decoder layer for a batch, in eval mode.

    Args:
        model: as for `encoder_attention`.
        src_tokens: `[B, L]`, padded on either side.
        previous: the tokens that the decoder reads, `[B, T]`, starting with the end-of-sentence token.

    Raises:
        UserError: the model's decoder is not a Transformer.
    """
    decoder = model.decoder
    if not isinstance(decoder, TransformerDecoderBase):
        raise UserError(f"a {type(decoder).__name__} has no self-attention to show")
    padding = previous.eq(decoder.padding_idx)
    mask = padding if padding.any() else None  # as in fairseq's decoder
    with evaluating(model):
        encoded = model.encoder(src_tokens, src_tokens.ne(model.encoder.padding_idx).sum(1))
        source, source_mask = encoded["encoder_out"][0], encoded["encoder_padding_mask"][0]
        states = decoder.extract_features(previous, encoded)[1]["inner_states"]
        future = decoder.buffered_future_mask(states[0])
        explanations = []
        for layer, state in zip(decoder.layers, states):
            own = None if layer.cross_self_attention else _explain(layer, state, mask, future)
            cross = None
            if layer.encoder_attn is not None:
                _, cross, _ = layer(
                    state,
                    source,
                    source_mask,
                    self_attn_mask=future,
                    self_attn_padding_mask=mask,
                    need_head_weights=True,
                )
                cross = cross.transpose(0, 1)
            explanations.append(DecoderExplanation(own, cross))
        return explanations


def lstm_attention(model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor) -> Optional[Tensor]:
    """Return the attention of an LSTM decoder to the source, `[B, T, L]`, or None if it has no attention.

    Args: as for `decoder_attention`; the sentences are sorted by length, as fairseq's LSTM requires.

    Raises:
        UserError: the model's decoder is not fairseq's LSTM.
    """
    decoder = model.decoder
    if not isinstance(decoder, LSTMDecoder):
        raise UserError(f"a {type(decoder).__name__} is not an LSTM with attention")
    needed = decoder.need_attn
    decoder.need_attn = True  # it is off in a model that is prepared for generation
    try:
        with evaluating(model):
            lengths = src_tokens.ne(model.encoder.padding_idx).sum(1)
            _, extra = decoder.extract_features(previous, model.encoder(src_tokens, lengths))
    finally:
        decoder.need_attn = needed
    return extra["attn"][0] if isinstance(extra, dict) else extra


def _explain(
    layer: Union[TransformerEncoderLayerBase, TransformerDecoderLayerBase],
    x: Tensor,
    mask: Optional[Tensor],
    attn_mask: Optional[Tensor] = None,
) -> Explanation:
    if layer.normalize_before:
        x = layer.self_attn_layer_norm(x)
    if isinstance(layer.self_attn, SplitAttention):
        return explain(layer.self_attn, x, mask, attn_mask)
    # With an incremental state, fairseq's attention uses its own code, which returns weights for each head.
    _, weights = layer.self_attn(
        x, x, x, key_padding_mask=mask, incremental_state={}, need_head_weights=True, attn_mask=attn_mask
    )
    weights = weights.transpose(0, 1)
    return Explanation(before=weights, after=weights, vertical=None, horizontal=None)


@torch.no_grad()
def explain(
    attention: SplitAttention, x: Tensor, mask: Optional[Tensor], attn_mask: Optional[Tensor] = None
) -> Explanation:
    """Recompute the attention and capsules that a self-attention does not return.

    Args:
        x: its input `[L, B, C]`.
        mask: `[B, L]`, True marks padding.
        attn_mask: `[L, L]`, added to the logits.
    """
    q, k, _ = attention.factors(x, mask)
    logits = q @ k.transpose(2, 3)
    routing = routing_of(attention)
    vertical, horizontal = (None, None) if routing is None else routing.capsules(logits, mask, factors=(q, k))
    if len(attention.changes_logits) == 1 and routing is not None:
        changed = sum((part for part in (vertical, horizontal) if part is not None), logits)
    else:
        changed = attention.changed(logits, mask, (q, k))
    before, after = (masked_attention(part, mask, attn_mask) for part in (logits, changed))
    return Explanation(before, after, vertical, horizontal)


def routing_of(attention: SplitAttention) -> Optional[AttentionRouting]:
    """Return the routing of an attention's logits, or None."""
    parts = (getattr(attention, name) for name in attention.changes_logits)
    return next((part for part in parts if isinstance(part, AttentionRouting)), None)


class AttentionInspection(Inspection):
    """Every attention of a model, with and without routing.

    Arrays:
        `encoder_attention`, `decoder_attention` `[layer, head, query, key]`: the attention.
        `encoder_attention_before`, `decoder_attention_before`: the attention of the same layers without routing.
        `encoder_vertical`, `encoder_horizontal`, `decoder_horizontal`: the capsules of the layers that route.
        `cross_attention` `[layer, head, target, source]`, in an LSTM `[target, source]`.
    """

    views = views_in_file("attention_routing")

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        arrays: Dict[str, NamedArray] = {}
        if isinstance(model.encoder, TransformerEncoderBase):
            layers = encoder_attention(model, sentence.source)
            arrays.update(_arrays("encoder", layers, sentence.source_words))
        axes = {"target": sentence.target_words, "source": sentence.source_words}
        if isinstance(model.decoder, LSTMDecoder):
            attention = lstm_attention(model, sentence.source, sentence.previous)
            return arrays if attention is None else {**arrays, "cross_attention": named(attention[0], **axes)}
        if not isinstance(model.decoder, TransformerDecoderBase):
            return arrays
        explanations = decoder_attention(model, sentence.source, sentence.previous)
        own = [layer.own for layer in explanations if layer.own is not None]
        # The first step reads the end-of-sentence token. Each later step reads the previous word.
        read = (sentence.target_words[-1], *sentence.target_words[:-1])
        arrays.update(_arrays("decoder", own, read))
        cross = [(number, layer.cross) for number, layer in enumerate(explanations, start=1) if layer.cross is not None]
        if cross:
            arrays["cross_attention"] = by_layer(cross, head=numbers(cross[0][1].size(1)), **axes)
        return arrays


def _arrays(side: str, layers: List[Explanation], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    arrays = {}
    routes = any(part is not None for layer in layers for part in (layer.vertical, layer.horizontal))
    for name, attribute in (
        ("attention_before", "before"),
        ("attention", "after"),
        ("vertical", "vertical"),
        ("horizontal", "horizontal"),
    ):
        parts = [(number, getattr(layer, attribute)) for number, layer in enumerate(layers, start=1)]
        parts = [(number, part) for number, part in parts if part is not None]
        if parts and (routes or attribute == "after"):
            arrays[f"{side}_{name}"] = by_layer(parts, head=numbers(parts[0][1].size(1)), query=words, key=words)
    return arrays
