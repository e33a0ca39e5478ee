"""Self-attention and cross-attention of a model, before and after routing (Duan et al. 2020, Fig. 5)."""

from typing import Iterator, List, NamedTuple, Optional, Tuple, Union

from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMDecoder
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.evaluating import evaluating
from fairseq_capsule.models.routing_attention import Explanation, RoutingSelfAttention


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


def routing_attentions(
    model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor
) -> Iterator[Tuple[str, RoutingSelfAttention, Tensor, Tensor]]:
    """Yield the self-attentions of a Transformer that route, with their inputs for a batch, in eval mode.

    Args:
        model: a Transformer of this package.
        src_tokens: `[B, L]`, padded on either side.
        previous: the tokens that the decoder reads, `[B, T]`, starting with the end-of-sentence token.

    Yields:
        "encoder" or "decoder", the attention, its input `[L, B, C]` and padding mask `[B, L]` (True marks padding).
    """
    with evaluating(model):
        encoded = model.encoder(src_tokens, src_tokens.ne(model.encoder.padding_idx).sum(1), return_all_hiddens=True)
        states = model.decoder.extract_features(previous, encoded)[1]["inner_states"]
    read = (("encoder", src_tokens, encoded["encoder_states"]), ("decoder", previous, states))
    for side, tokens, inputs in read:
        part = getattr(model, side)
        padding = tokens.eq(part.padding_idx)
        for layer, x in zip(part.layers, inputs):
            if isinstance(layer.self_attn, RoutingSelfAttention):
                x = layer.self_attn_layer_norm(x) if layer.normalize_before else x
                yield side, layer.self_attn, x, padding


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
    if isinstance(layer.self_attn, RoutingSelfAttention):
        return layer.self_attn.explain(x, mask, attn_mask)
    # With an incremental state, fairseq's attention uses its own code, which returns weights for each head.
    _, weights = layer.self_attn(
        x, x, x, key_padding_mask=mask, incremental_state={}, need_head_weights=True, attn_mask=attn_mask
    )
    weights = weights.transpose(0, 1)
    return Explanation(before=weights, after=weights, vertical=None, horizontal=None)
