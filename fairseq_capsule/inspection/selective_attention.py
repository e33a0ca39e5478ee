"""What earlier words mask in self-attention, and the scale of each head with a norm."""

from typing import Any, Dict, Iterator, List, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from capsule_routing.modules import QueryKeyNorm, SelectiveAttention
from fairseq_capsule.inspection.attention import attention_input
from fairseq_capsule.inspection.statistics import Statistics, added_up, mean_where
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, by_layer, views_in_file
from fairseq_capsule.models.outputs import encode


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
            for number, layer in _layers(model, side):
                norm = getattr(layer.self_attn, "query_key_norm", None)
                if isinstance(norm, QueryKeyNorm):
                    for head, scale in enumerate(norm.scale.detach().view(-1), start=1):
                        statistics[f"{side}_scale_{number}_{head}"] = mean_where(scale, torch.ones_like(scale).bool())
        return statistics


def _layers(model: BaseFairseqModel, side: str) -> Iterator[Tuple[int, Any]]:
    return enumerate(getattr(model, side).layers, start=1)


def _masked(model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Dict[str, List[Tuple[int, Tensor, Tensor]]]:
    """Return for each side its layers in which words mask: the number, what is subtracted, and what a query may see.

    Both tensors are `[B, 1, L, L]`; True marks the keys of words that a word may attend to.
    """
    if not any(isinstance(module, SelectiveAttention) for module in model.modules()):
        return {}
    encoded = encode(model, source, return_all_hiddens=True)
    states = model.decoder.extract_features(previous, encoded)[1]["inner_states"]
    sides: Dict[str, List[Tuple[int, Tensor, Tensor]]] = {}
    for side, tokens, inputs in (("encoder", source, encoded["encoder_states"]), ("decoder", previous, states)):
        padding = tokens.eq(getattr(model, side).padding_idx)
        seen = ~(padding[:, None, None, :] | padding[:, None, :, None])
        for (number, layer), state in zip(_layers(model, side), inputs):
            selection = getattr(layer.self_attn, "selective_attention", None)
            if isinstance(selection, SelectiveAttention):
                q, k, _ = layer.self_attn.factors(attention_input(layer, state), padding)
                masked = selection.masked(q @ k.transpose(2, 3), padding)
                sides.setdefault(side, []).append((number, masked, seen.tril() if selection.causal else seen))
    return sides
