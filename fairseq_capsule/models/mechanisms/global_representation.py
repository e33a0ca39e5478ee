"""One vector for the whole source sentence: GRET (Weng et al. 2020)."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.attentions import layer_outputs
from fairseq_capsule.models.mechanism import EncodedSource, IncrementalState, Mechanism, register_mechanism
from fairseq_capsule.models.statistics import Statistics, added_up, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.models.views import NamedArray, Panel, Sentence, View, by_layer, named, numbers
from fairseq_capsule.modules import CapsulePooling, ContextGate, GlobalRepresentation, MeanPooling, PlainSum

GLOBAL_REPRESENTATION = ChoiceEnum(["capsule", "mean", "none"])
GLOBAL_POOLING = ChoiceEnum(["attentive", "mean", "concat"])
GLOBAL_AGGREGATION = ChoiceEnum(["gru", "none"])
GLOBAL_GATE = ChoiceEnum(["context", "none"])


@dataclass
class GlobalRepresentationConfig(FairseqDataclass):
    """The options of a model whose decoder may read one vector for the whole source sentence."""

    global_representation: GLOBAL_REPRESENTATION = field(
        default="none",
        metadata={
            "help": "what the sentence's vector is made of: capsules that the words are routed to, the words' mean, "
            "nothing (Weng et al., Table 3)"
        },
    )
    global_pooling: GLOBAL_POOLING = field(
        default="attentive", metadata={"help": "how the capsules become one vector (Weng et al., footnote 3)"}
    )
    global_capsules: int = field(default=32, metadata={"help": "capsules of a layer (Weng et al., Fig. 4)"})
    global_capsule_dim: Optional[int] = field(
        default=None,
        metadata={"help": "size of a capsule (default: --encoder-embed-dim by the number of capsules)"},
    )
    global_iterations: int = field(default=3, metadata={"help": "routing iterations of these capsules"})
    global_aggregation: GLOBAL_AGGREGATION = field(
        default="gru", metadata={"help": "whether the vector is made of all layers, or of the last one alone"}
    )
    global_gate: GLOBAL_GATE = field(
        default="context", metadata={"help": "whether each target word takes what it needs of the vector, or all of it"}
    )


class GlobalVector(Mechanism):
    """Each target word takes what it needs of one vector, made of capsules of every encoder layer (§3).

    Its arrays: `global_coupling` `[layer, iteration, source, capsule]`, each word's share of a capsule;
    `global_weights` `[layer, capsule]`; `global_gate` `[target, dimension]` and its mean `global_gate_mean` `[target]`.
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
            "How one vector is made of the whole source sentence, and how much of it each word of the translation "
            "takes.",
            (
                Panel(
                    "global_coupling",
                    "words in capsules",
                    "source",
                    "capsule",
                    "coupling",
                    summed=("source",),
                    caption="Which source words, the rows, fill each capsule, a column. Each column sums to 1. In a "
                    "trained model each capsule has words of its own. If all columns look alike, the capsules are "
                    "copies of one another; a column of one colour is the mean of the sentence.",
                    distribution="source",
                ),
                Panel(
                    "global_weights",
                    "weights of the capsules",
                    "capsule",
                    None,
                    "weights",
                    caption="How much of each capsule the layer's vector takes; they sum to 1. In a trained model a "
                    "few capsules have most of it. Bars of one length (1/{capsule} each) mean that the pooling "
                    "takes their mean.",
                    distribution="capsule",
                ),
                Panel(
                    "global_gate_mean",
                    "gate, mean",
                    "target",
                    None,
                    "mean",
                    caption="How much of the sentence's vector each word of the translation takes: the mean of the "
                    "gate below over its dimensions, from 0 to 1. In a trained model the words differ. Bars of one "
                    "length mean that the gate does not depend on the word; about 0.5 everywhere is an untrained "
                    "gate.",
                ),
                Panel(
                    "global_gate",
                    "gate",
                    "target",
                    "dimension",
                    "gate",
                    caption="The gate of each word, a row, in each dimension of the decoder's state, a column. In a "
                    "trained model the columns differ and the rows differ in some of them. Rows that are all alike "
                    "mean that the gate does not depend on the word; one colour everywhere is an untrained gate.",
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
                "--encoder-layerdrop needs --global-representation none: every layer gives a part of the vector"
            )
        if config.global_aggregation == "gru" and len(config.kept_layers("encoder")) < 2:
            raise UserError("--global-aggregation gru goes from layer to layer: with --encoder-layers 1 use none")
        output_dim = config.decoder_output_dim or config.decoder_embed_dim
        if config.encoder_embed_dim != output_dim:
            raise UserError(
                f"--global-representation {config.global_representation} adds a vector of the encoder's size "
                f"{config.encoder_embed_dim} to the decoder's output of size {output_dim}: make them equal"
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

    def encode(self, encoder: FairseqEncoder, layers: Sequence[Tensor], padding_mask: Tensor) -> Optional[Tensor]:
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
            # The gate reads what fairseq's own decoder gives.
            state, _ = TransformerDecoderBase.extract_features(model.decoder, sentence.previous, encoded)
            gate = model.decoder.context_gate.gate(state, encoded[self.name][0])[0]
            steps = sentence.target_words
            found["global_gate"] = named(gate, target=steps, dimension=numbers(gate.size(1)))
            found["global_gate_mean"] = named(gate.mean(1), target=steps)
        return found

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """The entropy of each capsule's couplings over the words and the capsules' norms, over all layers; the mean of
        the gate."""
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
    first = len(states) - len(of_capsules)  # without aggregation there is the last layer's pooling alone
    for number, (pooling, state) in enumerate(zip(of_capsules, states[first:]), start=first + 1):
        routed = [pooling.capsules(state, iterations=count) for count in range(1, pooling.iterations + 1)]
        couplings.append((number, torch.stack([each.coupling for each in routed], dim=1)))
        if pooling.query is not None:
            weights.append((number, pooling.weights(routed[-1].capsules)))
    _, iterations, _, capsules = (numbers(size) for size in couplings[0][1].shape)
    found = {"global_coupling": by_layer(couplings, iteration=iterations, source=words, capsule=capsules)}
    return {**found, "global_weights": by_layer(weights, capsule=capsules)} if weights else found


GLOBAL_REPRESENTATION_MECHANISM = register_mechanism(GlobalVector())
