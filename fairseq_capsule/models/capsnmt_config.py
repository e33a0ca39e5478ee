"""The options of `capsnmt` and its presets."""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum

from fairseq_capsule.errors import UserError
from fairseq_capsule.mechanisms.aggregation import AggregationConfig
from fairseq_capsule.mechanisms.base import check_mechanisms
from fairseq_capsule.models.presets import Presets

CONTEXTS = ChoiceEnum(["attention", "concat"])
NORMS = ChoiceEnum(["both", "after"])


@dataclass
class CapsNMTConfig(AggregationConfig):
    """The options of the base preset. Building the model raises a UserError that names an option with a wrong value."""

    encoder_embed_dim: int = field(default=512, metadata={"help": "size of the encoder's states and of the capsules"})
    encoder_layers: int = field(default=4, metadata={"help": "bidirectional LSTM layers of the encoder"})
    decoder_embed_dim: int = field(default=512, metadata={"help": "the same as --encoder-embed-dim"})
    decoder_layers: int = field(default=3, metadata={"help": "LSTM layers of the decoder"})
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings and of each LSTM's output"})
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "share encoder and decoder embeddings; the output always shares the decoder's"},
    )
    decoder_context: CONTEXTS = field(
        default="attention", metadata={"help": "how the decoder reads the capsules; concat: as in the preprint of 2018"}
    )
    decoder_norms: NORMS = field(
        default="both",
        metadata={
            "help": "layer norms of the decoder. both: of the first LSTM's input, which is the sum of an embedding and "
            "the context, and after each LSTM (Fig. 1); after: only after each LSTM"
        },
    )
    max_source_positions: int = field(default=1024, metadata={"help": "max number of tokens in the source sequence"})
    max_target_positions: int = field(default=1024, metadata={"help": "max number of tokens in the target sequence"})

    def __post_init__(self):
        if self.encoder_embed_dim % 2:
            raise UserError(f"--encoder-embed-dim must be even (half for each direction), not {self.encoder_embed_dim}")
        if self.decoder_embed_dim != self.encoder_embed_dim:
            raise UserError(
                f"--decoder-embed-dim {self.decoder_embed_dim} must equal --encoder-embed-dim {self.encoder_embed_dim}"
                ", because capsules are added to the decoder's inputs"
            )
        check_mechanisms(self)


_BIG = {"encoder_embed_dim": 1024, "decoder_embed_dim": 1024, "dropout": 0.3}
_TINY = {"encoder_embed_dim": 128, "decoder_embed_dim": 128, "encoder_layers": 2, "decoder_layers": 2}
PRESETS = Presets(
    (CapsNMTConfig,),
    {
        "capsnmt_base": {},
        "capsnmt_big": _BIG,
        "capsnmt_tiny": _TINY,
        "simple_aggregation_base": {"aggregation": "simple"},
        "simple_aggregation_tiny": {"aggregation": "simple", **_TINY},
    },
)
