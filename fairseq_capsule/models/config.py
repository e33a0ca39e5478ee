"""All options of fairseq's Transformer, under their command-line names, in a flat dataclass.

A nested one, as fairseq has it, breaks `--arch` of a preset.
"""

from copy import copy
from dataclasses import Field, dataclass, field, fields, is_dataclass, make_dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from fairseq.dataclass import FairseqDataclass
from fairseq.models.transformer import TransformerConfig

from capsule_routing.errors import UserError
from capsule_routing.text.number_sets import number_set
from fairseq_capsule.options import option, setting


def _flat_fields(nested: FairseqDataclass, prefix: str = "") -> Iterator[Tuple[str, Any, Field[Any]]]:
    for item in fields(nested):
        name, value = prefix + item.name, getattr(nested, item.name)
        if is_dataclass(value):
            yield from _flat_fields(value, name + "_")
        elif not item.name.startswith("_") and name not in OWN:
            yield name, item.type, field(default=value, metadata={**item.metadata, **RANGES.get(name, {})})


AT_LEAST_1 = (
    "encoder_embed_dim",
    "encoder_ffn_embed_dim",
    "encoder_layers",
    "encoder_attention_heads",
    "decoder_layers",
    "decoder_attention_heads",
    "max_source_positions",
    "max_target_positions",
    "quant_noise_pq_block_size",
    "base_sublayers",
)
PROBABILITIES = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "relu_dropout",
    "adaptive_softmax_dropout",
    "encoder_layerdrop",
    "decoder_layerdrop",
)
# The ranges of fairseq's options, which fairseq does not check.
RANGES: Dict[str, Dict[str, Any]] = {
    **dict.fromkeys(AT_LEAST_1, {"lowest": 1}),
    **dict.fromkeys(PROBABILITIES, {"probability": True}),
    "base_layers": {"lowest": 0},
}


# These fields are redefined below. In fairseq the decoder's input and output sizes are interpolations between nested
# configs, which a flat config cannot express. With fairseq's `--arch transformer` the decoder's other sizes follow the
# encoder's, but its dataclass has constants. fairseq declares the layers to keep as lists, but splits them as text.
OWN = (
    "decoder_embed_dim",
    "decoder_ffn_embed_dim",
    "decoder_input_dim",
    "decoder_output_dim",
    "encoder_layers_to_keep",
    "decoder_layers_to_keep",
)
_Flat: Any = make_dataclass(
    "_Flat", _flat_fields(TransformerConfig()), bases=(FairseqDataclass,), namespace={"__module__": __name__}
)


@dataclass
class FlatTransformerConfig(_Flat):
    """All options of fairseq's Transformer in one flat dataclass."""

    decoder_embed_dim: Optional[int] = setting(
        None, "decoder embedding dimension (default: --encoder-embed-dim)", lowest=1
    )
    decoder_ffn_embed_dim: Optional[int] = setting(
        None, "decoder embedding dimension for FFN (default: --encoder-ffn-embed-dim)", lowest=1
    )
    decoder_input_dim: Optional[int] = setting(None, "decoder input dimension (default: --decoder-embed-dim)", lowest=1)
    decoder_output_dim: Optional[int] = setting(
        None, "decoder output dimension; another size adds a linear layer (default: --decoder-embed-dim)", lowest=1
    )

    encoder_layers_to_keep: Optional[str] = setting(
        None, "encoder layers to keep of a trained model, counted from 0: 0,2,4"
    )
    decoder_layers_to_keep: Optional[str] = setting(
        None, "decoder layers to keep of a trained model, counted from 0: 0,2,4"
    )

    def kept_layers(self, side: str) -> List[int]:
        """Return the trained layers of the "encoder" or "decoder" that remain after pruning, counted from 0.

        An option that does not name different existing layers raises a UserError.
        """
        layers, name = getattr(self, f"{side}_layers"), f"{side}_layers_to_keep"
        text = getattr(self, name)
        if text is None:
            return list(range(layers))
        kept = number_set(text, 0, layers - 1)
        # fairseq also reads this text when it prunes, and does not understand ranges.
        if kept is None or len(kept) < len(text.split(",")) or "-" in text:
            raise UserError(f"{option(name)}: {text!r} must name different layers from 0 to {layers - 1}, such as 0,2")
        return kept

    def with_decoder_sizes(self) -> "FlatTransformerConfig":
        """Return a copy in which the decoder's sizes that were not given are those of the encoder."""
        # The config itself keeps None, because fairseq merges the options of the user into a preset's object.
        config = copy(self)
        for name in ("embed_dim", "ffn_embed_dim"):
            if getattr(self, f"decoder_{name}") is None:
                setattr(config, f"decoder_{name}", getattr(self, f"encoder_{name}"))
        return config

    def nested(self) -> TransformerConfig:
        """Return fairseq's nested config. It holds the additional options of this config under their flat names."""
        flat = self.with_decoder_sizes()
        config = TransformerConfig.from_namespace(flat)
        config.decoder.input_dim = self.decoder_input_dim or config.decoder.embed_dim
        config.decoder.output_dim = self.decoder_output_dim or config.decoder.embed_dim
        # fairseq overwrites the numbers of layers with the numbers of kept layers.
        config.flat = flat
        config.trained_layers = {"encoder": self.encoder_layers, "decoder": self.decoder_layers}
        config.kept_layers = {side: self.kept_layers(side) for side in config.trained_layers}
        return config
