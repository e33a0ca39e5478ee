"""Routing of attention logits: the capsule-Transformer (Duan et al. 2020)."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple, Union

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from fairseq.models.lstm import LSTMDecoder
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.attentions import decoder_attention, encoder_attention, lstm_attention, routing_attentions
from fairseq_capsule.models.mechanism import Mechanism, register_mechanism
from fairseq_capsule.models.options import layer_set, option
from fairseq_capsule.models.routing_attention import Explanation, RoutingSelfAttention
from fairseq_capsule.models.statistics import Statistics, added_up, capsule_norms, coupling_entropy
from fairseq_capsule.models.views import NamedArray, Panel, Sentence, View, by_layer, named, numbers
from fairseq_capsule.modules import AttentionRouting
from fairseq_capsule.modules.attention_routing import accepted_capsules
from fairseq_capsule.routing import RoutingResult, dynamic_routing

ENCODER_ROUTING = ChoiceEnum(["both", "vertical", "horizontal", "none"])
DECODER_ROUTING = ChoiceEnum(["horizontal", "none"])


@dataclass
class AttentionRoutingConfig(FairseqDataclass):
    """Options for routing the logits of self-attention."""

    encoder_routing: ENCODER_ROUTING = field(
        default="both", metadata={"help": "the routing in the encoder's self-attention (Duan et al., Table 3)"}
    )
    decoder_routing: DECODER_ROUTING = field(
        default="horizontal", metadata={"help": "whether the decoder's self-attention routes (Duan et al., Table 2)"}
    )
    encoder_routing_layers: str = field(
        default="all", metadata={"help": "encoder layers that route: all, 1-3 or 1,4-6 (Duan et al., Table 4)"}
    )
    routing_iterations: int = field(default=3, metadata={"help": "routing iterations of the attention logits"})


_TRAINED_ATTENTION = (
    "In a trained model most rows have a few bright cells: a neighbour, a related word or the end of the sentence. "
    "A row of one colour takes the mean of all words: the head selects nothing there."
)


_CAPSULES = {
    "vertical": ("vertical capsules Ω↑", "The routing from heads to words adds this to the logits."),
    "horizontal": ("horizontal capsules Ω↔", "The routing from words to heads adds this to the logits."),
}


def _self_attention(side: str, title: str, caption: str, *routings: str) -> View:
    def attention(name: str, title: str, shown: str) -> Panel:
        text = f"{shown} {_TRAINED_ATTENTION}"
        return Panel(
            f"{side}_{name}", title, "query", "key", "attention", summed=("key",), caption=text, distribution="key"
        )

    def capsules(name: str, title: str, shown: str) -> Panel:
        text = (
            f"{shown} Purple raises the attention to a word, orange lowers it. In a trained model the numbers of a row "
            "differ by 0.1 or more. A row of one colour changes nothing: adding a constant to all logits of a row does "
            "not change the softmax."
        )
        return Panel(f"{side}_{name}", title, "query", "key", f"±{name}", caption=text)

    panels = (
        attention(
            "attention_before",
            "attention without routing",
            "The attention of the same layer if nothing is added to its logits.",
        ),
        attention(
            "attention", "attention", "The attention of each word (row) to each word (column). Each row sums to 1."
        ),
        *(capsules(name, *_CAPSULES[name]) for name in routings),
    )
    return View(f"{side}_attention", title, caption, panels)


class RoutedAttention(Mechanism):
    """Attention `softmax(mask(E + Ω↑ + Ω↔))`: capsules of the logits `E` are added to the logits (§3.2-3.4).

    Its arrays include every attention, with or without routing:
        `encoder_attention`, `decoder_attention` `[layer, head, query, key]`: the attention.
        `encoder_attention_before`, `decoder_attention_before`: the attention of the same layers without routing.
        `encoder_vertical`, `encoder_horizontal`, `decoder_horizontal`: the capsules of the layers that route.
        `cross_attention` `[layer, head, target, source]`, in an LSTM `[target, source]`.
    """

    name = "attention_routing"
    summary = "routes the logits of self-attention to capsules and adds these to the logits (Duan et al. 2020)"
    options = AttentionRoutingConfig
    off = {"encoder_routing": "none", "decoder_routing": "none"}
    preset = "capsule"
    on = {"encoder_routing": "both", "decoder_routing": "horizontal"}
    iterations = "routing_iterations"
    views = (
        _self_attention(
            "encoder",
            "Attention of the encoder",
            "Each source word (row) attends to the source words (columns).",
            "vertical",
            "horizontal",
        ),
        _self_attention(
            "decoder",
            "Attention of the decoder",
            "Each word that the decoder has read (row) attends to itself and to the words before it (columns).",
            "horizontal",
        ),
        View(
            "cross_attention",
            "Attention to the source",
            "Each word of the translation (row) attends to the source words (columns).",
            (
                Panel(
                    "cross_attention",
                    "attention",
                    "target",
                    "source",
                    "attention",
                    summed=("source",),
                    caption="The attention to each source word before the row's word is generated. Each row sums to 1. "
                    "In a trained model the bright cells follow the order of the translation, but only in some layers "
                    "and heads. A row of one colour takes the mean of the source. If only the column at the end of the "
                    "sentence is bright, almost nothing is taken.",
                    distribution="source",
                ),
            ),
        ),
    )
    # Arrays that a model without any mechanism has.
    plain = frozenset({"encoder_attention", "decoder_attention", "cross_attention"})

    def check(self, config: Any) -> None:
        layer_set("encoder_routing_layers", config.encoder_routing_layers, config.encoder_layers)
        for name, routing in (("encoder", config.encoder_routing), ("decoder", config.decoder_routing)):
            if routing != "none" and getattr(config, name + "_xformers_att_config"):
                raise UserError(f"{option(name + '_xformers_att_config')} needs --{name}-routing none")
        if config.cross_self_attention and config.decoder_routing != "none":
            raise UserError("--cross-self-attention needs --decoder-routing none, because its keys are not its queries")
        if config.base_layers and config.decoder_routing != "none":
            raise UserError("--base-layers needs --decoder-routing none, because a BASE layer has no attention")

    def build_encoder(self, encoder: FairseqEncoder, config: Any) -> None:
        parts = config.encoder_routing
        if parts == "none":
            return
        kept = config.kept_layers["encoder"]
        routed = layer_set("encoder_routing_layers", config.encoder_routing_layers, config.trained_layers["encoder"])
        for index in (place for place, layer in enumerate(kept) if layer + 1 in routed):
            routing = AttentionRouting(
                config.encoder.attention_heads,
                vertical=parts in ("both", "vertical"),
                horizontal=parts in ("both", "horizontal"),
                iterations=config.routing_iterations,
            )
            route_self_attention(encoder.layers[index], routing)

    def build_decoder(self, decoder: FairseqDecoder, config: Any, source_dim: int, state_dim: int) -> None:
        if config.decoder_routing == "none":
            return
        # By index, because iterating over the list drops layers with --decoder-layerdrop.
        for index in range(len(decoder.layers)):
            routing = AttentionRouting(
                config.decoder.attention_heads, vertical=False, iterations=config.routing_iterations, causal=True
            )
            route_self_attention(decoder.layers[index], routing)
            # In evaluation all layers of fairseq return their cross-attention, and the decoder discards it. The layer
            # that provides the alignment still gets an explicit request for it.
            decoder.layers[index].need_attn = False

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        found: Dict[str, NamedArray] = {}
        if isinstance(model.encoder, TransformerEncoderBase):
            found.update(_explained("encoder", encoder_attention(model, sentence.source), sentence.source_words))
        axes = {"target": sentence.target_words, "source": sentence.source_words}
        if isinstance(model.decoder, LSTMDecoder):
            attention = lstm_attention(model, sentence.source, sentence.previous)
            return found if attention is None else {**found, "cross_attention": named(attention[0], **axes)}
        if not isinstance(model.decoder, TransformerDecoderBase):
            return found
        layers = decoder_attention(model, sentence.source, sentence.previous)
        own = [layer.own for layer in layers if layer.own is not None]
        # The first step reads the end-of-sentence token. Each later step reads the previous word.
        read = (sentence.target_words[-1], *sentence.target_words[:-1])
        found.update(_explained("decoder", own, read))
        cross = [(number, layer.cross) for number, layer in enumerate(layers, start=1) if layer.cross is not None]
        if cross:
            found["cross_attention"] = by_layer(cross, head=numbers(cross[0][1].size(1)), **axes)
        return found

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the entropy of the couplings and the capsules' norms of each part, over all layers that route.

        `acceptance_entropy` is that of the shares `λ` of the heads in `Ω↑` (Eq. 11).
        """
        return added_up(
            [
                {f"{side}_{name}": mean for name, mean in found.items()}
                for side, attention, x, padding in routing_attentions(model, source, previous)
                for found in _statistics(attention.routing, attention.logits(x, padding), padding)
            ]
        )


def route_self_attention(
    layer: Union[TransformerEncoderLayerBase, TransformerDecoderLayerBase], routing: AttentionRouting
) -> None:
    """Replace the self-attention of a fairseq Transformer layer by one that routes its logits with `routing`.

    Raises:
        UserError: the layer is wrapped, so its attention cannot be replaced.
    """
    if not isinstance(layer, (TransformerEncoderLayerBase, TransformerDecoderLayerBase)):
        raise UserError(
            f"attention routing does not work in a layer wrapped as {type(layer).__name__}; use another --ddp-backend"
        )
    plain = layer.self_attn
    layer.self_attn = RoutingSelfAttention(
        plain.embed_dim,
        plain.num_heads,
        routing,
        dropout=plain.dropout_module.p,
        q_noise=layer.quant_noise,
        qn_block_size=layer.quant_noise_block_size,
    )


def _explained(side: str, layers: List[Explanation], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    found = {}
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
            found[f"{side}_{name}"] = by_layer(parts, head=numbers(parts[0][1].size(1)), query=words, key=words)
    return found


def _statistics(routing: AttentionRouting, logits: Tensor, padding: Tensor) -> List[Statistics]:
    """Return the statistics of each part of a layer's routing.

    The couplings come from `dynamic_routing`, because the fast functions do not return them.

    Args:
        logits: `[B, H, L, L]`.
        padding: `[B, L]`, True marks padding.
    """
    length = logits.size(2)
    if routing.causal:
        logits = logits.tril()
    found = []
    if routing.acceptance is not None:
        # Heads are routed to the positions. A padded position gets no share.
        start = logits.new_zeros(logits.shape[:3])
        start = start.masked_fill(padding[:, None, :], torch.finfo(start.dtype).min)
        routed = dynamic_routing(logits, routing.iterations, initial_logits=start)
        found.append(_named("vertical", routed, padding[:, None, :], padding))
        weight, bias = routing.acceptance.weight, routing.acceptance.bias
        accepted, _ = accepted_capsules(logits, weight, bias, routing.iterations, padding_mask=padding)
        found.append({"acceptance_entropy": coupling_entropy(accepted, 1)})
    if routing.horizontal:
        # For each position, the tokens up to it are routed to the heads.
        later = torch.ones(length, length, dtype=torch.bool, device=logits.device).triu(1)
        left_out = later | padding[:, None, :]
        votes = logits.transpose(1, 2).unsqueeze(1)
        routed = dynamic_routing(votes, routing.iterations, padding_mask=left_out)
        unused = (left_out | padding[:, :, None]).unsqueeze(-1)
        found.append(_named("horizontal", routed, unused, padding[:, :, None]))
    return found


def _named(part: str, routed: RoutingResult, inputs: Tensor, outputs: Tensor) -> Statistics:
    """Return the statistics of one routing; `inputs` masks its couplings and `outputs` masks its capsules."""
    norm, dead = capsule_norms(routed.capsules, outputs)
    return {
        f"{part}_entropy": coupling_entropy(routed.coupling, -1, inputs),
        f"{part}_norm": norm,
        f"{part}_dead": dead,
    }


ATTENTION_ROUTING = register_mechanism(RoutedAttention())
