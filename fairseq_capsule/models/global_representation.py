"""GRET's part of a model: its options, and what they build."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from fairseq_capsule.errors import UserError
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


def check_global_representation(config) -> None:
    """Raise a UserError for a value that is not allowed."""
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


def build_global_representation(config) -> Optional[GlobalRepresentation]:
    """What the encoder computes, or None."""
    if config.global_representation == "none":
        return None
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
    return GlobalRepresentation(embed_dim, [pooling() for _ in range(layers)], aggregate)


def build_gate(config, output_dim: int) -> Optional[nn.Module]:
    """What takes the vector into the decoder's states, or None."""
    if config.global_representation == "none":
        return None
    return ContextGate(output_dim) if config.global_gate == "context" else PlainSum()
