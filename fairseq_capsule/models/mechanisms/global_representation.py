"""One vector that represents the whole source sentence: GRET (Weng et al. 2020)."""

from dataclasses import dataclass, field
from typing import Any, Optional, Sequence, Tuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqDecoder, FairseqEncoder
from torch import Tensor, nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.mechanism import EncodedSource, IncrementalState, Mechanism, register_mechanism
from fairseq_capsule.modules import CapsulePooling, ContextGate, GlobalRepresentation, MeanPooling, PlainSum
from fairseq_capsule.modules.global_representation import POOLINGS

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
    """One vector, made of capsules of all encoder layers, that each target word reads through a gate (§3)."""

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


GLOBAL_REPRESENTATION_MECHANISM = register_mechanism(GlobalVector())
