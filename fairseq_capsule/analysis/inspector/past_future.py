"""What a model takes for translated, step by step (Zheng et al. 2019, Fig. 4), and the words it expects there."""

from typing import Dict, NamedTuple

import torch
from torch import Tensor

from fairseq_capsule.analysis.inspector.attention import looking_into
from fairseq_capsule.errors import UserError
from fairseq_capsule.modules import PastFutureOutput

CONTENTS = ("PAST", "FUTURE", "redundant")


class BagWords(NamedTuple):
    """The most probable words of a bag at each step, the first the most probable one; both `[B, T, K]`."""

    words: Tensor
    probabilities: Tensor


def past_future(model: torch.nn.Module, src_tokens: Tensor, previous: Tensor) -> PastFutureOutput:
    """PAST and FUTURE of a batch, in eval mode, by one pass over finished translations.

    Args:
        model: one with PAST and FUTURE, of this package.
        src_tokens: `[B, I]`, padded on either side.
        previous: what the decoder reads at its steps, `[B, T]`, the end of sentence first.

    Raises:
        UserError: the model has no PAST and FUTURE.
    """
    if getattr(model.decoder, "past_future", None) is None:
        raise UserError("the model has no PAST and FUTURE to show: it was trained with --past-future none")
    with looking_into(model):
        lengths = src_tokens.ne(model.encoder.padding_idx).sum(1)
        return model(src_tokens, lengths, previous)[1]["past_future"]


def bag_words(model: torch.nn.Module, routed: PastFutureOutput, top: int) -> Dict[str, BagWords]:
    """The `top` words that `past` and `future` make most probable at each step, `softmax(E W Ω)` (§3.3).

    Empty for a model without the parameters of the bag-of-words loss (`--guided-heads none` or `bca`).
    """
    heads = model.decoder.past_future.bow
    if heads is None:
        return {}
    with looking_into(model):
        embeddings = model.decoder.output_embeddings
        logits = {name: heads[name](getattr(routed, name)) @ embeddings.t() for name in ("past", "future")}
        found = {name: part.softmax(-1).topk(min(top, len(embeddings))) for name, part in logits.items()}
    return {name: BagWords(part.indices, part.values) for name, part in found.items()}
