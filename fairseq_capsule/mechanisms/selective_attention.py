"""Selective attention (Leviathan et al. 2024), and a norm of queries and keys."""

from dataclasses import dataclass
from typing import Any, Mapping

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from capsule_routing import from_options
from capsule_routing.modules import QueryKeyNorm
from fairseq_capsule.mechanisms.base import Mechanism, Place
from fairseq_capsule.options import setting

SIDES = ChoiceEnum(["none", "encoder", "decoder", "both"])


@dataclass
class SelectiveAttentionConfig(FairseqDataclass):
    """Options for the logits of self-attention."""

    query_key_norm: SIDES = setting(
        "none", "where queries and keys of self-attention have an RMS norm, and each head a learnt scale"
    )
    selective_attention: SIDES = setting(
        "none", "where earlier words mask keys of self-attention for later ones (Leviathan et al. 2024)"
    )


class Selection(Mechanism):
    """Attention `softmax(mask(E_{l,k} − Σ_{t < l} S_{t,k}))`, with `E` of normalised queries and keys."""

    name = "selective_attention"
    summary = "normalises queries and keys of self-attention, and lets earlier words mask keys (Leviathan et al. 2024)"
    options = SelectiveAttentionConfig
    on = {"query_key_norm": "both", "selective_attention": "both"}

    def attention(self, config: Any, place: Place) -> Mapping[str, nn.Module]:
        if place.kind == "cross":
            return {}
        norm = from_options.query_key_norm(config, place.side)
        selection = from_options.selective_attention(config, place.side)
        parts = {"factors": norm, "logits": selection}
        return {name: part for name, part in parts.items() if part is not None}

    def attached_as(self, part: nn.Module) -> str:
        return "query_key_norm" if isinstance(part, QueryKeyNorm) else self.name


SELECTIVE_ATTENTION = Selection()
