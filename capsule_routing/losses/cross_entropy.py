"""The label-smoothed cross-entropy of fairseq."""

from typing import Tuple

import torch
from torch import Tensor


def label_smoothed_cross_entropy(
    logits: Tensor, target: Tensor, padding_mask: Tensor, smoothing: float = 0.0
) -> Tuple[Tensor, Tensor]:
    """Compute the loss of a batch, summed over its words, in nats.

    The word of the target has the probability `1 − ε`, and the others share `ε`. torch's `cross_entropy` lets all words
    share it.

    Args:
        logits: `[B, T, V]`.
        target: `[B, T]`; any number at padding.
        padding_mask: `[B, T]`, True marks padding.
        smoothing: `ε`.

    Returns:
        The loss, and the negative log-likelihood without smoothing, which has no gradient; of at least float32.
    """
    log_probabilities = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    words = log_probabilities.gather(2, target.masked_fill(padding_mask, 0).unsqueeze(2)).squeeze(2)
    likelihood = -words.masked_fill(padding_mask, 0).sum()
    loss = likelihood
    if smoothing:
        share = smoothing / (logits.size(-1) - 1)
        every = -log_probabilities.sum(-1).masked_fill(padding_mask, 0).sum()
        loss = (1 - smoothing - share) * likelihood + share * every
    return loss, likelihood.detach()
