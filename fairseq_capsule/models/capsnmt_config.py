"""The options of `capsnmt` and its presets."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.flat_config import preset

AGGREGATIONS = ChoiceEnum(["capsule", "simple"])
VOTE_WEIGHTS = ChoiceEnum(["own", "shared"])
POSITIONS = ChoiceEnum(["routing", "result", "none"])
SCORINGS = ChoiceEnum(["separable", "votes"])
CONTEXTS = ChoiceEnum(["attention", "concat"])


@dataclass
class CapsNMTConfig(FairseqDataclass):
    """The base preset. A wrong value is refused when the model is built, with the option's name."""

    encoder_embed_dim: int = field(default=512, metadata={"help": "size of the encoder's states and of the capsules"})
    encoder_layers: int = field(default=4, metadata={"help": "bidirectional LSTM layers of the encoder"})
    decoder_embed_dim: int = field(default=512, metadata={"help": "the same as --encoder-embed-dim"})
    decoder_layers: int = field(default=3, metadata={"help": "LSTM layers of the decoder"})
    dropout: float = field(default=0.1, metadata={"help": "of embeddings and of each LSTM's output"})
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "share encoder and decoder embeddings; the output's are the decoder's always"},
    )
    aggregation: AGGREGATIONS = field(
        default="capsule", metadata={"help": "routing to capsules, or the rival of four plain vectors"}
    )
    aggregation_capsules: int = field(default=6, metadata={"help": "capsules that stand for a sentence"})
    aggregation_iterations: int = field(default=3, metadata={"help": "routing iterations"})
    aggregation_weights: VOTE_WEIGHTS = field(
        default="own", metadata={"help": "votes of each iteration by weights of its own, or by shared ones"}
    )
    aggregation_positions: POSITIONS = field(
        default="routing",
        metadata={
            "help": "where sinusoids of their positions are added: to children, and to parents where agreements read "
            "them; to what the decoder reads too; nowhere"
        },
    )
    aggregation_scoring: SCORINGS = field(
        default="separable", metadata={"help": "agreements by a network of their own, or of the votes themselves"}
    )
    aggregation_scale: Optional[float] = field(
        default=None,
        metadata={
            "help": "what a capsule is multiplied by when the decoder reads it, its position aside (default: the "
            "square root of its size, the norm of the encoder's states; 1: as it was squashed)"
        },
    )
    leaky_softmax: bool = field(
        default=False, metadata={"help": "words may stay with no capsule (the preprint of 2018)"}
    )
    decoder_context: CONTEXTS = field(
        default="attention", metadata={"help": "how the decoder reads the capsules; concat: as the preprint of 2018"}
    )
    max_source_positions: int = field(default=1024, metadata={"help": "max number of tokens in the source sequence"})
    max_target_positions: int = field(default=1024, metadata={"help": "max number of tokens in the target sequence"})

    def __post_init__(self):
        if self.aggregation_capsules < 2:
            raise UserError(f"--aggregation-capsules must be at least 2, rivals, not {self.aggregation_capsules}")
        if self.aggregation_scale is not None and self.aggregation_scale <= 0:
            raise UserError(f"--aggregation-scale must be above 0, not {self.aggregation_scale}")
        if self.encoder_embed_dim % 2:
            raise UserError(f"--encoder-embed-dim must be even, half for each direction, not {self.encoder_embed_dim}")
        if self.decoder_embed_dim != self.encoder_embed_dim:
            raise UserError(
                f"--decoder-embed-dim {self.decoder_embed_dim} must be --encoder-embed-dim {self.encoder_embed_dim}: "
                "capsules are added to the decoder's inputs"
            )


def presets():
    """The config of every architecture, by its name."""
    big = {"encoder_embed_dim": 1024, "decoder_embed_dim": 1024, "dropout": 0.3}
    tiny = {"encoder_embed_dim": 128, "decoder_embed_dim": 128, "encoder_layers": 2, "decoder_layers": 2}
    return {
        "capsnmt": CapsNMTConfig,
        "capsnmt_base": preset(CapsNMTConfig),
        "capsnmt_big": preset(CapsNMTConfig, **big),
        "capsnmt_tiny": preset(CapsNMTConfig, **tiny),
        "simple_aggregation_base": preset(CapsNMTConfig, aggregation="simple"),
        "simple_aggregation_tiny": preset(CapsNMTConfig, aggregation="simple", **tiny),
    }
