"""One vector that represents the whole source sentence: GRET (Weng et al. 2020)."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.mechanism import EncodedSource, IncrementalState, Mechanism, register_mechanism
from fairseq_capsule.models.outputs import layer_outputs
from fairseq_capsule.models.statistics import Statistics, added_up, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.models.views import NamedArray, Panel, Sentence, View, by_layer, named, numbers
from fairseq_capsule.modules import CapsulePooling, ContextGate, GlobalRepresentation, MeanPooling, PlainSum
from fairseq_capsule.modules.capsule_pooling import POOLINGS

GLOBAL_REPRESENTATION = ChoiceEnum(["capsule", "mean", "none"])
GLOBAL_POOLING = ChoiceEnum(list(POOLINGS))
GLOBAL_AGGREGATION = ChoiceEnum(["gru", "none"])
GLOBAL_GATE = ChoiceEnum(["context", "none"])


@dataclass
class GlobalRepresentationConfig(FairseqDataclass):
    """Options for the vector of the whole source sentence."""

    global_representation: GLOBAL_REPRESENTATION = field(
        default="none",
        metadata={
            "help": "how the sentence's vector is computed: capsule (words are routed to capsules), mean (of the "
            "words) or none (Weng et al., Table 3)"
        },
    )
    global_pooling: GLOBAL_POOLING = field(
        default="attentive", metadata={"help": "how the capsules become one vector (Weng et al., footnote 3)"}
    )
    global_capsules: int = field(default=32, metadata={"help": "number of capsules in a layer (Weng et al., Fig. 4)"})
    global_capsule_dim: Optional[int] = field(
        default=None,
        metadata={"help": "size of a capsule (default: --encoder-embed-dim divided by the number of capsules)"},
    )
    global_iterations: int = field(default=3, metadata={"help": "routing iterations of these capsules"})
    global_aggregation: GLOBAL_AGGREGATION = field(
        default="gru", metadata={"help": "gru: aggregate the vectors of all layers; none: use the last layer only"}
    )
    global_gate: GLOBAL_GATE = field(
        default="context", metadata={"help": "context: each target word has a gate for the vector; none: no gate"}
    )


class GlobalVector(Mechanism):
    """One vector, made of capsules of all encoder layers, that each target word reads through a gate (§3).

    Its arrays:
        `global_coupling` `[layer, iteration, source, capsule]`: the share of each word in a capsule.
        `global_weights` `[layer, capsule]`: the weight of each capsule in the layer's vector.
        `global_gate` `[target, dimension]` and its mean `global_gate_mean` `[target]`.
    """

    name = "global_representation"
    summary = (
        "gives every target word one vector for the whole source sentence, made of capsules (GRET, Weng et al. 2020)"
    )
    options = GlobalRepresentationConfig
    off = {"global_representation": "none"}
    preset = "gret"
    on = {"global_representation": "capsule"}
    iterations = "global_iterations"
    layer_lists = ("global_representation.poolings",)
    views = (
        View(
            "global_representation",
            "Global representation",
            "How one vector is computed from the whole source sentence, and how much of it each word of the "
            "translation uses.",
            (
                Panel(
                    "global_coupling",
                    "words in capsules",
                    "source",
                    "capsule",
                    "coupling",
                    summed=("source",),
                    caption="The share of each source word (row) in each capsule (column). Each column sums to 1. In a "
                    "trained model each capsule has its own words. If all columns look alike, the capsules are copies "
                    "of one another. A column of one colour is the mean of the sentence.",
                    distribution="source",
                ),
                Panel(
                    "global_weights",
                    "weights of the capsules",
                    "capsule",
                    None,
                    "weights",
                    caption="The weight of each capsule in the layer's vector. The weights sum to 1. In a trained "
                    "model a few capsules have most of the weight. If all bars are equal (1/{capsule} each), the "
                    "pooling takes the mean of the capsules.",
                    distribution="capsule",
                ),
                Panel(
                    "global_gate_mean",
                    "gate, mean",
                    "target",
                    None,
                    "mean",
                    caption="How much of the sentence's vector each word of the translation uses: the mean of the gate "
                    "below over its dimensions, from 0 to 1. In a trained model the words differ. If all bars have the "
                    "same length, the gate does not depend on the word. About 0.5 everywhere is an untrained gate.",
                ),
                Panel(
                    "global_gate",
                    "gate",
                    "target",
                    "dimension",
                    "gate",
                    caption="The gate of each word (row) in each dimension of the decoder's state (column). In a "
                    "trained model the columns differ, and in some columns the rows differ. If all rows look alike, "
                    "the gate does not depend on the word. One colour everywhere is an untrained gate.",
                ),
            ),
        ),
    )

    def routes(self, config: Any) -> bool:
        return self.known_to(config) and str(config.global_representation) == "capsule"

    def check(self, config: Any) -> None:
        if config.global_representation == "none":
            return
        if config.encoder_layerdrop:
            raise UserError(
                "--encoder-layerdrop needs --global-representation none, because every layer contributes to the vector"
            )
        if config.global_aggregation == "gru" and config.quant_noise_scalar:
            raise UserError(
                "--quant-noise-scalar does not work with --global-aggregation gru, because fairseq cannot quantize it; "
                "leave it out, or use --global-aggregation none"
            )
        if config.global_aggregation == "gru" and len(config.kept_layers("encoder")) < 2:
            raise UserError(
                "--global-aggregation gru needs at least 2 encoder layers; for 1 use --global-aggregation none"
            )
        output_dim = config.decoder_output_dim or config.decoder_embed_dim
        if config.encoder_embed_dim != output_dim:
            raise UserError(
                f"--global-representation {config.global_representation} adds a vector of the encoder's size "
                f"{config.encoder_embed_dim} to the decoder's output of size {output_dim}; make them equal"
            )

    def build_encoder(self, encoder: FairseqEncoder, config: Any) -> None:
        embed_dim = config.encoder.embed_dim
        aggregate = config.global_aggregation == "gru"

        def pooling() -> nn.Module:
            if config.global_representation == "mean":
                return MeanPooling(embed_dim)
            return CapsulePooling(
                embed_dim,
                config.global_capsules,
                config.global_capsule_dim,
                iterations=config.global_iterations,
                pooling=config.global_pooling,
            )

        layers = config.encoder.layers if aggregate else 1
        encoder.global_representation = GlobalRepresentation(embed_dim, [pooling() for _ in range(layers)], aggregate)

    def encode(self, encoder: FairseqEncoder, layers: Sequence[Tensor], padding_mask: Tensor) -> Tensor:
        return encoder.global_representation(layers, padding_mask)

    def build_decoder(self, decoder: FairseqDecoder, config: Any, source_dim: int, state_dim: int) -> None:
        decoder.context_gate = ContextGate(state_dim) if config.global_gate == "context" else PlainSum()

    def decode(
        self,
        decoder: FairseqDecoder,
        features: Tensor,
        source: EncodedSource,
        incremental_state: Optional[IncrementalState],
    ) -> Tuple[Tensor, None]:
        return decoder.context_gate(features, source.vectors[self.name]), None

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        part = getattr(model.encoder, "global_representation", None)
        if part is None:
            return {}
        lengths = torch.tensor([sentence.source.size(1)])
        encoded = model.encoder(sentence.source, lengths, return_all_hiddens=True)
        found = _poolings(part.poolings, layer_outputs(encoded), sentence.source_words)
        if isinstance(model.decoder.context_gate, ContextGate):
            # The gate reads the output of fairseq's decoder.
            state, _ = TransformerDecoderBase.extract_features(model.decoder, sentence.previous, encoded)
            gate = model.decoder.context_gate.gate(state, encoded[self.name][0])[0]
            steps = sentence.target_words
            found["global_gate"] = named(gate, target=steps, dimension=numbers(gate.size(1)))
            found["global_gate_mean"] = named(gate.mean(1), target=steps)
        return found

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the mean of the gate and, over all layers, the entropy of the couplings and the norms of the capsules.

        The entropy of a capsule is over the words.
        """
        mask = source.eq(model.encoder.padding_idx)
        encoded = model.encoder(source, (~mask).sum(1), return_all_hiddens=True)
        poolings = model.encoder.global_representation.poolings
        layers = []
        for pooling, state in zip(poolings, layer_outputs(encoded)[-len(poolings) :]):
            if isinstance(pooling, CapsulePooling):
                routed = pooling.capsules(state, mask)
                norm, dead = capsule_norms(routed.capsules)
                entropy = coupling_entropy(routed.coupling, -2, mask.unsqueeze(-1))
                layers.append({"entropy": entropy, "norm": norm, "dead": dead})
        found = added_up(layers)
        if isinstance(model.decoder.context_gate, ContextGate):
            state, _ = TransformerDecoderBase.extract_features(model.decoder, previous, encoded)
            gate = model.decoder.context_gate.gate(state, encoded[self.name][0])
            found["gate"] = mean_where(gate, previous.ne(model.decoder.padding_idx).unsqueeze(-1))
        return found


def _poolings(poolings: Sequence[nn.Module], states: List[Tensor], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    of_capsules = [pooling for pooling in poolings if isinstance(pooling, CapsulePooling)]  # all of them, or none
    if not of_capsules:
        return {}
    couplings, weights = [], []
    first = len(states) - len(of_capsules)  # without aggregation only the last layer has a pooling
    for number, (pooling, state) in enumerate(zip(of_capsules, states[first:]), start=first + 1):
        routed = [pooling.capsules(state, iterations=count) for count in range(1, pooling.iterations + 1)]
        couplings.append((number, torch.stack([each.coupling for each in routed], dim=1)))
        if pooling.query is not None:
            weights.append((number, pooling.weights(routed[-1].capsules)))
    _, iterations, _, capsules = (numbers(size) for size in couplings[0][1].shape)
    found = {"global_coupling": by_layer(couplings, iteration=iterations, source=words, capsule=capsules)}
    return {**found, "global_weights": by_layer(weights, capsule=capsules)} if weights else found


GLOBAL_REPRESENTATION_MECHANISM = register_mechanism(GlobalVector())
