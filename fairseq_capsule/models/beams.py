"""Computation that depends only on the source, once for the beams of a sentence, which fairseq decodes as rows."""

from typing import Dict, Iterable, List, Optional

import torch
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn

from fairseq_capsule.mechanisms.base import IncrementalState

# Under this name, a reordered encoder output has the number of the sentence of each row, and the tensors it belongs to.
SENTENCES = "sentences"


def sentences_of(encoder_out: Dict[str, List[Tensor]], device: torch.device) -> Tensor:
    """Return the numbers of sentences of the rows of a Transformer encoder's output, `[B]`, possibly reordered.

    Rows with the same number are equal. If the caller has replaced a tensor that the numbers were stored with, the rows
    of a sentence may differ, and each row counts as a sentence.
    """
    sentences, *expected = encoder_out.get(SENTENCES, [None])
    if sentences is None or [*map(id, expected)] != [*map(id, _tensors(encoder_out))]:
        return torch.arange(encoder_out["encoder_out"][0].size(1), device=device)
    return sentences


def with_sentences(encoder_out: Dict[str, List[Tensor]], sentences: Tensor) -> Dict[str, List[Tensor]]:
    """Return an encoder output for which `sentences_of` returns these sentences of its rows, `[B]`."""
    return {**encoder_out, SENTENCES: [sentences, *_tensors(encoder_out)]}


def _tensors(encoder_out: Dict[str, List[Tensor]]) -> List[Tensor]:
    return [tensor for name, tensors in encoder_out.items() if name != SENTENCES for tensor in tensors]


def project_source_once(
    layers: Iterable[nn.Module], source: Tensor, padding_mask: Optional[Tensor], beams: int, state: IncrementalState
) -> None:
    """Compute keys and values of the cross-attentions once for each sentence, and cache them for all its beams.

    `source` is the encoder's output `[I, B, C]`, of which `beams` consecutive rows of `B` are one sentence, and
    `padding_mask` is `[B, I]`. The incremental state gets what fairseq's attentions store in it themselves. Wrapped
    layers are left to fairseq, because their weights may be elsewhere.
    """
    for layer in layers:
        attention = getattr(layer, "encoder_attn", None)
        if attention is None or not isinstance(layer, TransformerDecoderLayerBase):
            continue
        kept = {"prev_key_padding_mask": padding_mask}
        for name, projection in (("prev_key", attention.k_proj), ("prev_value", attention.v_proj)):
            projected = projection(source[:, ::beams]).unflatten(-1, (attention.num_heads, attention.head_dim))
            kept[name] = projected.permute(1, 2, 0, 3).repeat_interleave(beams, dim=0)
        attention._set_input_buffer(state, kept)
