"""The beams of a sentence, which fairseq decodes as so many sentences: what the source alone decides they share."""

from typing import Dict, Iterable, Optional

from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class KnowsBeams:
    """A mixin of decoders and their parts: what a generator said of its beams, and whether it is so."""

    beam_size = 1  # the hint

    def beams_of(self, source: Tensor) -> int:
        """How many neighbours of `source` `[I, B, C]` are one sentence.

        That is `beam_size`, if all such neighbours are the same, and 1 if not: a hint may be an older one.
        """
        if self.beam_size == 1 or source.size(1) % self.beam_size:
            return 1
        beams = source.unflatten(1, (-1, self.beam_size))
        return self.beam_size if bool((beams == beams[:, :, :1]).all()) else 1


def project_source_once(
    layers: Iterable[nn.Module],
    source: Tensor,
    padding_mask: Optional[Tensor],
    beams: int,
    incremental_state: IncrementalState,
) -> None:
    """Keep what fairseq's attentions to the source would, as if each had projected it: keys and values, beam by beam.

    fairseq projects every beam's copy. Layers that something wraps, whose weights may be elsewhere, are left to it.

    Args:
        layers: those of a Transformer's decoder.
        source: the encoder's output `[I, B, C]`.
        padding_mask: `[B, I]`, True marks padding of the source.
        beams: how many neighbours in `B` are one sentence.
        incremental_state: as fairseq's, at the first step.
    """
    for layer in layers:
        attention = getattr(layer, "encoder_attn", None)
        if attention is None or not isinstance(layer, TransformerDecoderLayerBase):
            continue
        key, value = (
            projection(source[:, ::beams])
            .unflatten(-1, (attention.num_heads, attention.head_dim))
            .permute(1, 2, 0, 3)
            .repeat_interleave(beams, dim=0)
            for projection in (attention.k_proj, attention.v_proj)
        )
        kept = {"prev_key": key, "prev_value": value, "prev_key_padding_mask": padding_mask}
        attention._set_input_buffer(incremental_state, kept)
