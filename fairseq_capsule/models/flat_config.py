"""Flat dataclasses of fairseq's nested ones.

A preset is a flat dataclass: a nested one breaks `--arch`. Its fields are generated from fairseq's, so that every
option of fairseq's Transformer stays one of ours, under the name that its command line gives it.
"""

from dataclasses import Field, dataclass, field, fields, is_dataclass, make_dataclass
from typing import Any, Iterator, List, Optional, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models.transformer import TransformerConfig

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.options import option
from fairseq_capsule.number_sets import number_set


def _flat_fields(nested: FairseqDataclass, prefix: str = "") -> Iterator[Tuple[str, Any, Field]]:
    for item in fields(nested):
        if item.name.startswith("_"):
            continue
        value = getattr(nested, item.name)
        if is_dataclass(value):
            yield from _flat_fields(value, prefix + item.name + "_")
        else:
            yield prefix + item.name, item.type, field(default=value, metadata=item.metadata)


def _flatten(name: str, nested: FairseqDataclass, without: Tuple[str, ...]) -> Type[FairseqDataclass]:
    flat = [item for item in _flat_fields(nested) if item[0] not in without]
    return make_dataclass(name, flat, bases=(FairseqDataclass,), namespace={"__module__": __name__})


# The decoder's input and output sizes are interpolations between nested configs, which a flat one cannot express; the
# layers to keep are lists there, which fairseq splits as texts.
OWN = ("decoder_input_dim", "decoder_output_dim", "encoder_layers_to_keep", "decoder_layers_to_keep")
_Flat: Any = _flatten("_Flat", TransformerConfig(), without=OWN)


@dataclass
class FlatTransformerConfig(_Flat):
    """Every option of fairseq's Transformer, flat."""

    decoder_input_dim: Optional[int] = field(
        default=None, metadata={"help": "decoder input dimension (default: --decoder-embed-dim)"}
    )
    decoder_output_dim: Optional[int] = field(
        default=None,
        metadata={"help": "decoder output dimension, a linear layer more if different (default: --decoder-embed-dim)"},
    )

    encoder_layers_to_keep: Optional[str] = field(
        default=None, metadata={"help": "encoder layers to keep of a trained model, counted from 0: 0,2,4"}
    )
    decoder_layers_to_keep: Optional[str] = field(
        default=None, metadata={"help": "decoder layers to keep of a trained model, counted from 0: 0,2,4"}
    )

    def kept_layers(self, side: str) -> List[int]:
        """The layers that the `encoder` or the `decoder` has of those that it was trained with, counted from 0.

        Raises:
            UserError: no such layers.
        """
        layers, name = getattr(self, f"{side}_layers"), f"{side}_layers_to_keep"
        text = getattr(self, name)
        if text is None:
            return list(range(layers))
        kept = number_set(text, 0, layers - 1)
        # fairseq reads this text too, when it prunes: it knows no ranges.
        if kept is None or len(kept) < len(text.split(",")) or "-" in text:
            raise UserError(f"{option(name)}: {text!r} must name different layers from 0 to {layers - 1}, as 0,2")
        return kept

    def nested(self) -> TransformerConfig:
        """fairseq's own config, carrying this one's further options under their flat names."""
        config = TransformerConfig.from_namespace(self)
        config.decoder.input_dim = self.decoder_input_dim or self.decoder_embed_dim
        config.decoder.output_dim = self.decoder_output_dim or self.decoder_embed_dim
        # fairseq sets the numbers of layers to those that are kept.
        config.trained_layers = {"encoder": self.encoder_layers, "decoder": self.decoder_layers}
        config.kept_layers = {side: self.kept_layers(side) for side in config.trained_layers}
        return config
