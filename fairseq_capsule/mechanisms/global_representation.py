"""One vector that represents the whole source sentence: GRET (Weng et al. 2020)."""

from dataclasses import dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from capsule_routing import from_options
from capsule_routing.errors import UserError
from capsule_routing.modules import GlobalRepresentation
from capsule_routing.modules.global_representation import POOLINGS
from fairseq_capsule.mechanisms.base import Mechanism, Sizes, Source, Target
from fairseq_capsule.options import iterations, setting

REPRESENTATIONS = ChoiceEnum(["capsule", "mean", "none"])
GLOBAL_POOLINGS = ChoiceEnum(list(POOLINGS))
GLOBAL_AGGREGATIONS = ChoiceEnum(["gru", "none"])
GLOBAL_GATES = ChoiceEnum(["context", "none"])


@dataclass
class GlobalRepresentationConfig(FairseqDataclass):
    """Options for the vector of the whole source sentence."""

    global_representation: REPRESENTATIONS = setting(
        "none",
        "how the sentence's vector is computed: capsule (words are routed to capsules), mean (of the "
        "words) or none (Weng et al., Table 3)",
    )
    global_pooling: GLOBAL_POOLINGS = setting(
        "attentive", "how the capsules become one vector (Weng et al., footnote 3)"
    )
    global_capsules: int = setting(32, "number of capsules in a layer (Weng et al., Fig. 4)", lowest=1)
    global_capsule_dim: Optional[int] = setting(
        None, "size of a capsule (default: --encoder-embed-dim divided by the number of capsules)", lowest=1
    )
    global_iterations: int = iterations(3, "routing iterations of these capsules")
    global_aggregation: GLOBAL_AGGREGATIONS = setting(
        "gru", "gru: aggregate the vectors of all layers; none: use the last layer only"
    )
    global_gate: GLOBAL_GATES = setting("context", "context: each target word has a gate for the vector; none: no gate")


class GlobalVector(Mechanism):
    """One vector, made of capsules of all encoder layers, that each target word reads through a gate (§3)."""

    name = "global_representation"
    summary = (
        "gives every target word one vector for the whole source sentence, made of capsules (GRET, Weng et al. 2020)"
    )
    options = GlobalRepresentationConfig
    on = {"global_representation": "capsule"}
    iterations = "global_iterations"
    reads_layers = ("encoder",)
    starts_as_baseline = True

    def check(self, config: Any) -> None:
        if config.global_representation == "none":
            return
        gru = config.global_aggregation == "gru"
        if gru and config.quant_noise_scalar:
            raise UserError(
                "--quant-noise-scalar does not work with --global-aggregation gru, because fairseq cannot quantize it; "
                "leave it out, or use --global-aggregation none"
            )
        if gru and len(config.kept_layers("encoder")) < 2:
            raise UserError(
                "--global-aggregation gru needs at least 2 encoder layers; for 1 use --global-aggregation none"
            )
        output_dim = config.decoder_output_dim or config.decoder_embed_dim
        if config.encoder_embed_dim != output_dim:
            raise UserError(
                f"--global-representation {config.global_representation} adds a vector of the encoder's size "
                f"{config.encoder_embed_dim} to the decoder's output of size {output_dim}; make them equal"
            )

    def iterates(self, config: Any) -> bool:
        return str(config.global_representation) == "capsule"

    def encoder(self, config: Any, sizes: Sizes) -> nn.Module:
        return from_options.global_representation(config, sizes.source, sizes.source_layers)

    def run_encoder(self, part: Any, source: Source) -> Source:
        return source.with_vector(self.name, part(source.layers, source.padding_mask))

    def decoder(self, config: Any, sizes: Sizes) -> nn.Module:
        return from_options.context_gate(config, sizes.target)

    def run_decoder(self, part: Any, target: Target, source: Source, kept: Any) -> Target:
        return target._replace(states=part(target.states, source.vectors[self.name]))

    def attached_as(self, part: nn.Module) -> str:
        return self.name if isinstance(part, GlobalRepresentation) else "context_gate"


GLOBAL_REPRESENTATION = GlobalVector()
