"""What earlier words mask in self-attention, and the scale of each head with a norm."""

from typing import Dict, List, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from capsule_routing.modules import QueryKeyNorm, SelectiveAttention
from fairseq_capsule.inspection.attention import self_attentions
from fairseq_capsule.inspection.statistics import Statistics, added_up, mean_where
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, by_layer, views_in_file


class SelectiveAttentionInspection(Inspection):
    """What is subtracted from the logits of the layers in which words mask.

    Arrays:
        `encoder_masks`, `decoder_masks` `[layer, query, key]`: `Σ_{t < l} S_{t,k}`, in units of logits.
    """

    views = views_in_file("selective_attention")

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        # The decoder's first step reads the end-of-sentence token. Each later step reads the previous word.
        read = (sentence.target_words[-1], *sentence.target_words[:-1])
        words = {"encoder": sentence.source_words, "decoder": read}
        arrays = {}
        for side, parts in _masked(model, sentence.source, sentence.previous).items():
            arrays[f"{side}_masks"] = by_layer(
                [(number, masked[:, 0]) for number, masked, _ in parts], query=words[side], key=words[side]
            )
        return arrays

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return what is subtracted on average, over all layers of a side, and the scale of each head.

        `SIDE_masks` is the mean of `Σ_{t < l} S_{t,k}` over words `l` and the keys that they may attend to;
        `SIDE_scale_LAYER_HEAD` is a scale.
        """
        statistics: Statistics = {}
        for side, parts in _masked(model, source, previous).items():
            statistics.update(added_up({f"{side}_masks": mean_where(masked, seen)} for _, masked, seen in parts))
        for side in ("encoder", "decoder"):
            for number, layer in enumerate(getattr(model, side).layers, start=1):
                norm = getattr(layer.self_attn, "query_key_norm", None)
                if isinstance(norm, QueryKeyNorm):
                    for head, scale in enumerate(norm.scale.detach().view(-1), start=1):
                        statistics[f"{side}_scale_{number}_{head}"] = mean_where(scale, torch.ones_like(scale).bool())
        return statistics


def _masked(model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Dict[str, List[Tuple[int, Tensor, Tensor]]]:
    """Return for each side its layers in which words mask: the number, what is subtracted, and what a query may see.

    Both tensors are `[B, 1, L, L]`; True marks the keys of words that a word may attend to.
    """
    if not any(isinstance(module, SelectiveAttention) for module in model.modules()):
        return {}
    sides: Dict[str, List[Tuple[int, Tensor, Tensor]]] = {}
    for side, number, self_attn, state, padding in self_attentions(model, source, previous):
        selection = getattr(self_attn, "selective_attention", None)
        if isinstance(selection, SelectiveAttention):
            q, k, _ = self_attn.factors(state, padding)
            logits = self_attn.changed(q @ k.transpose(2, 3), padding, (q, k), until=selection)
            masked = selection.masked(logits, padding)
            seen = ~(padding[:, None, None, :] | padding[:, None, :, None])
            sides.setdefault(side, []).append((number, masked, seen.tril() if selection.causal else seen))
    return sides
