"""Statistics of routed attention logits: the capsule-Transformer (Duan et al. 2020)."""

from typing import Iterator, List, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_capsule.inspection.attention import AttentionInspection, routing_of
from fairseq_capsule.inspection.statistics import Statistics, added_up, capsule_norms, coupling_entropy
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.models.outputs import evaluating
from fairseq_capsule.modules import AttentionRouting
from fairseq_capsule.modules.attention_routing import accepted_capsules
from fairseq_capsule.routing import RoutingResult, dynamic_routing


class AttentionRoutingInspection(AttentionInspection):
    """The attention of a model, and statistics of the layers that route it (§3.2-3.4)."""

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the entropy of the couplings and the capsules' norms of each part, over all layers that route.

        `acceptance_entropy` is that of the shares `λ` of the heads in `Ω↑` (Eq. 11).
        """
        return added_up(
            [
                {f"{side}_{name}": mean for name, mean in part.items()}
                for side, attention, routing, x, padding in routing_attentions(model, source, previous)
                for part in routing_statistics(routing, _logits(attention, x, padding), padding)
            ]
        )


def routing_attentions(
    model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor
) -> Iterator[Tuple[str, SplitAttention, AttentionRouting, Tensor, Tensor]]:
    """Yield the self-attentions of a Transformer that route, with their inputs for a batch, in eval mode.

    Args:
        model: a Transformer of this package.
        src_tokens: `[B, L]`, padded on either side.
        previous: the tokens that the decoder reads, `[B, T]`, starting with the end-of-sentence token.

    Yields:
        "encoder" or "decoder", the attention, its routing, its input `[L, B, C]` and its padding mask `[B, L]` (True
        marks padding).
    """
    with evaluating(model):
        encoded = model.encoder(src_tokens, src_tokens.ne(model.encoder.padding_idx).sum(1), return_all_hiddens=True)
        states = model.decoder.extract_features(previous, encoded)[1]["inner_states"]
    read = (("encoder", src_tokens, encoded["encoder_states"]), ("decoder", previous, states))
    for side, tokens, inputs in read:
        part = getattr(model, side)
        padding = tokens.eq(part.padding_idx)
        for layer, x in zip(part.layers, inputs):
            routing = routing_of(layer.self_attn) if isinstance(layer.self_attn, SplitAttention) else None
            if routing is not None:
                x = layer.self_attn_layer_norm(x) if layer.normalize_before else x
                yield side, layer.self_attn, routing, x, padding


def _logits(attention: SplitAttention, x: Tensor, padding: Tensor) -> Tensor:
    """Return the unrouted logits `E` `[B, H, L, L]`, 0 at padded queries and keys."""
    q, k, _ = attention.factors(x, padding)
    return q @ k.transpose(2, 3)


def routing_statistics(routing: AttentionRouting, logits: Tensor, padding: Tensor) -> List[Statistics]:
    """Return the statistics of each part of a layer's routing.

    The couplings come from `dynamic_routing`, because the fast functions do not return them.

    Args:
        logits: `[B, H, L, L]`.
        padding: `[B, L]`, True marks padding.
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
        weight, bias = routing.acceptance.weight, routing.acceptance.bias
        accepted, _ = accepted_capsules(logits, weight, bias, routing.iterations, padding_mask=padding)
        statistics.append({"acceptance_entropy": coupling_entropy(accepted, 1)})
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
    return {
        f"{part}_entropy": coupling_entropy(routed.coupling, -1, inputs),
        f"{part}_norm": norm,
        f"{part}_dead": dead,
    }
