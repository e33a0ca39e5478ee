"""Computation that the beams of a sentence share.

fairseq decodes the beams of a sentence as separate rows of a batch. Results that depend only on the source are the same
for all of them, and are computed once.
"""

from typing import Dict, Iterable, List, Optional

import torch
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn

from fairseq_capsule.mechanisms.base import IncrementalState

# Under this name, a reordered encoder output has the number of the sentence of each row, and the tensors it belongs to.
SENTENCES = "sentences"


def sentences_of(encoder_out: Dict[str, List[Tensor]], device: torch.device) -> Tensor:
    """Return the numbers of sentences of the rows of a Transformer encoder's output, `[B]`, possibly reordered.

    Rows with the same number are equal. The numbers are valid only for the tensors that they were stored with. If the
    caller has replaced any of these, the rows of a sentence may differ, and each row counts as a sentence.
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
    layers: Iterable[nn.Module],
    source: Tensor,
    padding_mask: Optional[Tensor],
    beams: int,
    incremental_state: IncrementalState,
) -> None:
    """Compute keys and values of the cross-attentions once for each sentence, and cache them for all its beams.

    The cache has the content that fairseq's attentions store themselves. fairseq projects the copy of every beam.
    Wrapped layers are skipped and left to fairseq, because their weights may be elsewhere.

    `source` is the encoder's output `[I, B, C]`, of which `beams` consecutive rows of `B` are one sentence, and
    `padding_mask` is `[B, I]`.
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
