"""Everything a model routes of one sentence, as arrays whose axes have names."""

from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import torch
from fairseq.models.lstm import LSTMDecoder
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_capsule.analysis.inspector.attention import (
    decoder_attention,
    encoder_attention,
    looking_into,
    lstm_attention,
)
from fairseq_capsule.analysis.inspector.past_future import CONTENTS, bag_words, past_future
from fairseq_capsule.models.capsnmt import CapsNMTEncoder
from fairseq_capsule.models.capsule_transformer import layer_outputs
from fairseq_capsule.models.routing_attention import Explanation
from fairseq_capsule.modules import CapsuleAggregation, CapsulePooling, ContextGate

TOP_WORDS = 10
PLAIN = ("encoder_attention", "decoder_attention", "cross_attention")  # what a model without capsules has


class NamedArray(NamedTuple):
    """Numbers, or words, and what they are numbered by.

    Attributes:
        values: the array.
        axes: for each of its dimensions, in order, a name and the labels along it.
    """

    values: np.ndarray
    axes: Dict[str, Tuple[str, ...]]


class Sentence(NamedTuple):
    """A source sentence and its translation, as the model reads them: tokens `[1, I]` and `[1, T]` and their words."""

    source: Tensor
    target: Tensor
    source_words: Tuple[str, ...]
    target_words: Tuple[str, ...]

    @property
    def previous(self) -> Tensor:
        """What the decoder reads at each step: it begins with the end of sentence."""
        return self.target.roll(1, dims=1)


def gather(model: nn.Module, sentence: Sentence) -> Dict[str, NamedArray]:
    """All arrays that the model has, by their names; recomputed, nothing is kept on the model.

    - `encoder_attention`, `decoder_attention` `[layer, head, query, key]`: what the model attends to; with
      `_before` what it would without routing; `encoder_vertical`, `encoder_horizontal`, `decoder_horizontal`: the
      capsules added to the logits, of the layers that route;
    - `cross_attention` `[layer, head, target, source]`, an LSTM's `[target, source]`;
    - `assignment` `[target, source, content]`: the share of each source word in PAST, FUTURE and neither, before the
      target word of that row is said (of two attentions: what PAST and FUTURE each take of it); `past_words`,
      `past_probabilities`, `future_…` `[target, rank]`;
    - `global_coupling` `[layer, iteration, source, capsule]`: each word's share of a capsule; `global_weights`
      `[layer, capsule]`; `global_gate` `[target, dimension]` and its mean `global_gate_mean` `[target]`;
    - `capsule_coupling` `[iteration, source, capsule]`: the share of each word that went to each capsule of CapsNMT.
    """
    arrays: Dict[str, NamedArray] = {}
    with looking_into(model):
        for part in PARTS:
            arrays.update(part(model, sentence))
    return arrays


def _encoder(model: nn.Module, sentence: Sentence) -> Dict[str, NamedArray]:
    if not isinstance(model.encoder, TransformerEncoderBase):
        return {}
    return _explained("encoder", encoder_attention(model, sentence.source), sentence.source_words)


def _decoder(model: nn.Module, sentence: Sentence) -> Dict[str, NamedArray]:
    axes = {"target": sentence.target_words, "source": sentence.source_words}
    if isinstance(model.decoder, LSTMDecoder):
        attention = lstm_attention(model, sentence.source, sentence.previous)
        return {} if attention is None else {"cross_attention": _named(attention[0], **axes)}
    if not isinstance(model.decoder, TransformerDecoderBase):
        return {}
    layers = decoder_attention(model, sentence.source, sentence.previous)
    cross = [(number, layer.cross) for number, layer in enumerate(layers, start=1) if layer.cross is not None]
    arrays = {"cross_attention": _layers(cross, head=_numbers(cross[0][1].size(1)), **axes)} if cross else {}
    own = [layer.own for layer in layers if layer.own is not None]
    # The first step reads the end of sentence, the others the word that the step before gave.
    read = (sentence.target_words[-1], *sentence.target_words[:-1])
    return {**_explained("decoder", own, read), **arrays} if own else arrays


def _explained(side: str, layers: List[Explanation], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    arrays = {}
    routes = any(part is not None for layer in layers for part in (layer.vertical, layer.horizontal))
    for name, field in (
        ("attention_before", "before"),
        ("attention", "after"),
        ("vertical", "vertical"),
        ("horizontal", "horizontal"),
    ):
        parts = [(number, getattr(layer, field)) for number, layer in enumerate(layers, start=1)]
        parts = [(number, part) for number, part in parts if part is not None]
        if parts and (routes or field == "after"):
            arrays[f"{side}_{name}"] = _layers(parts, head=_numbers(parts[0][1].size(1)), query=words, key=words)
    return arrays


def _past_future(model: nn.Module, sentence: Sentence) -> Dict[str, NamedArray]:
    if getattr(model.decoder, "past_future", None) is None:
        return {}
    routed = past_future(model, sentence.source, sentence.previous)
    shares, steps = routed.assignment[0], sentence.target_words
    contents = CONTENTS[: shares.size(-1)]
    arrays = {"assignment": _named(shares, target=steps, source=sentence.source_words, content=contents)}
    dictionary = model.decoder.dictionary
    for name, bag in bag_words(model, routed, TOP_WORDS).items():
        axes = {"target": steps, "rank": _numbers(bag.words.size(-1))}
        words = np.array([[dictionary[token] for token in step] for step in bag.words[0].tolist()])
        arrays[f"{name}_words"] = NamedArray(words, axes)
        arrays[f"{name}_probabilities"] = _named(bag.probabilities[0], **axes)
    return arrays


def _global_representation(model: nn.Module, sentence: Sentence) -> Dict[str, NamedArray]:
    part = getattr(model.encoder, "global_representation", None)
    if part is None:
        return {}
    lengths = torch.tensor([sentence.source.size(1)])
    encoded = model.encoder(sentence.source, lengths, return_all_hiddens=True)
    arrays = _poolings(part.poolings, layer_outputs(encoded), sentence.source_words)
    if isinstance(model.decoder.context_gate, ContextGate):
        # What fairseq's decoder gives is what the gate reads.
        state, _ = TransformerDecoderBase.extract_features(model.decoder, sentence.previous, encoded)
        gate = model.decoder.context_gate.gate(state, encoded["global_representation"][0])[0]
        steps = sentence.target_words
        arrays["global_gate"] = _named(gate, target=steps, dimension=_numbers(gate.size(1)))
        arrays["global_gate_mean"] = _named(gate.mean(1), target=steps)
    return arrays


def _poolings(poolings: Sequence[nn.Module], states: List[Tensor], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    if not isinstance(poolings[0], CapsulePooling):
        return {}
    couplings, weights = [], []
    first = len(states) - len(poolings)  # without aggregation there is the last layer's pooling alone
    for number, (pooling, state) in enumerate(zip(poolings, states[first:]), start=first + 1):
        routed = [pooling.capsules(state, iterations=count) for count in range(1, pooling.iterations + 1)]
        couplings.append((number, torch.stack([each.coupling for each in routed], dim=1)))
        if pooling.query is not None:
            weights.append((number, pooling.weights(routed[-1].capsules)))
    _, iterations, _, capsules = (_numbers(size) for size in couplings[0][1].shape)
    arrays = {"global_coupling": _layers(couplings, iteration=iterations, source=words, capsule=capsules)}
    return {**arrays, "global_weights": _layers(weights, capsule=capsules)} if weights else arrays


def _capsules(model: nn.Module, sentence: Sentence) -> Dict[str, NamedArray]:
    encoder = model.encoder
    if not isinstance(encoder, CapsNMTEncoder) or not isinstance(encoder.aggregation, CapsuleAggregation):
        return {}
    counts = range(1, encoder.aggregation.iterations + 1)
    coupling = torch.cat([encoder.aggregate(sentence.source, count).coupling for count in counts])
    axes = {"iteration": _numbers(len(coupling)), "source": sentence.source_words}
    return {"capsule_coupling": _named(coupling, **axes, capsule=_numbers(coupling.size(-1)))}


PARTS: Tuple[Callable[[nn.Module, Sentence], Dict[str, NamedArray]], ...] = (
    _encoder,
    _decoder,
    _past_future,
    _global_representation,
    _capsules,
)


def _layers(parts: Sequence[Tuple[int, Tensor]], **axes: Tuple[str, ...]) -> NamedArray:
    """One array of what the layers of those numbers have, each `[1, …]` with the given axes."""
    return _named(torch.cat([part for _, part in parts]), layer=tuple(str(number) for number, _ in parts), **axes)


def _named(values: Tensor, **axes: Tuple[str, ...]) -> NamedArray:
    return NamedArray(values.float().cpu().numpy(), axes)


def _numbers(count: int) -> Tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))
