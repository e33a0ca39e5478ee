"""Attention with and without routing, and statistics of routed logits: the capsule-Transformer (Duan et al. 2020)."""

from typing import Dict, List, Tuple

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMDecoder
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor

from capsule_routing.functions import RoutingResult, dynamic_routing
from capsule_routing.modules import AttentionRouting
from fairseq_capsule.inspection import attention
from fairseq_capsule.inspection.attention import Explanation
from fairseq_capsule.inspection.statistics import Statistics, added_up, capsule_norms, coupling_entropy
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, by_layer, named, numbers, views_in_file


class AttentionRoutingInspection(Inspection):
    """Every attention of a model, with and without routing, and statistics of the layers that route (§3.2-3.4).

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
            layers = attention.encoder_attention(model, sentence.source)
            arrays = _arrays("encoder", layers, sentence.source_words)
        axes = {"target": sentence.target_words, "source": sentence.source_words}
        if isinstance(model.decoder, LSTMDecoder):
            weights = attention.lstm_attention(model, sentence.source, sentence.previous)
            return arrays if weights is None else {**arrays, "cross_attention": named(weights[0], **axes)}
        if not isinstance(model.decoder, TransformerDecoderBase):
            return arrays
        attentions = attention.decoder_attention(model, sentence.source, sentence.previous)
        # The first step reads the end-of-sentence token. Each later step reads the previous word.
        read = (sentence.target_words[-1], *sentence.target_words[:-1])
        arrays.update(_arrays("decoder", [own for own, _ in attentions if own is not None], read))
        cross = [(number, weights) for number, (_, weights) in enumerate(attentions, start=1) if weights is not None]
        if cross:
            arrays["cross_attention"] = by_layer(cross, head=numbers(cross[0][1].size(1)), **axes)
        return arrays

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the entropy of the couplings and the capsules' norms of each part, over all layers that route.

        `acceptance_entropy` is that of the shares `λ` of the heads in `Ω↑` (Eq. 11).
        """
        statistics: List[Statistics] = []
        for side, _, self_attn, state, padding in attention.self_attentions(model, source, previous):
            routing = attention.routing_of(self_attn)
            if routing is not None:
                q, k, _ = self_attn.factors(state, padding)
                logits = self_attn.changed(q @ k.transpose(2, 3), padding, (q, k), until=routing)
                parts = routing_statistics(routing, logits, padding)
                statistics += [{f"{side}_{name}": mean for name, mean in part.items()} for part in parts]
        return added_up(statistics)


def routing_statistics(routing: AttentionRouting, logits: Tensor, padding: Tensor) -> List[Statistics]:
    """Return the statistics of each part of a layer's routing of logits `[B, H, L, L]` with padding `[B, L]`.

    The couplings come from `dynamic_routing`, because the fast functions do not return them.
    """
    if routing.causal:
        logits = logits.tril()
    statistics: List[Statistics] = []
    if routing.acceptance is not None:
        # Heads are routed to the positions. A padded position gets no share.
        start = logits.new_zeros(logits.shape[:3])
        start = start.masked_fill(padding[:, None, :], torch.finfo(start.dtype).min)
        routed = dynamic_routing(logits, routing.iterations, initial_logits=start)
        statistics.append(_named("vertical", routed, padding[:, None, :], padding))
        statistics.append({"acceptance_entropy": coupling_entropy(routing.accepted(logits, padding)[0], 1)})
    if routing.horizontal:
        # For each position, the tokens up to it are routed to the heads.
        later = torch.ones_like(logits[0, 0], dtype=torch.bool).triu(1)
        left_out = later | padding[:, None, :]
        votes = logits.transpose(1, 2).unsqueeze(1)
        routed = dynamic_routing(votes, routing.iterations, padding_mask=left_out)
        unused = (left_out | padding[:, :, None]).unsqueeze(-1)
        statistics.append(_named("horizontal", routed, unused, padding[:, :, None]))
    return statistics


def _named(part: str, routed: RoutingResult, inputs: Tensor, outputs: Tensor) -> Statistics:
    """Return the statistics of one routing; `inputs` masks its couplings and `outputs` masks its capsules."""
    norm, dead = capsule_norms(routed.capsules, outputs)
    entropy = coupling_entropy(routed.coupling, -1, inputs)
    return {f"{part}_entropy": entropy, f"{part}_norm": norm, f"{part}_dead": dead}


def _arrays(side: str, layers: List[Explanation], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    arrays = {}
    routes = any(part is not None for layer in layers for part in (layer.vertical, layer.horizontal))
    for name, of_layers in zip(("attention_before", "attention", "vertical", "horizontal"), zip(*layers)):
        parts = [(number, part) for number, part in enumerate(of_layers, start=1) if part is not None]
        if parts and (routes or name == "attention"):
            arrays[f"{side}_{name}"] = by_layer(parts, head=numbers(parts[0][1].size(1)), query=words, key=words)
    return arrays
