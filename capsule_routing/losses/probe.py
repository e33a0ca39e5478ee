"""What one vector predicts of a bag of words (Weng et al. 2020, Table 5)."""

import torch
from torch import Tensor


def bag_prediction_loss(logits: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Compute `−mean_τ log p(y_τ)` of each sentence, summed over the batch, in nats, with one prediction for the bag.

    Logits are `[B, V]`, the target `y` is `[B, T]`. The mask `[B, T]` is True at tokens that do not belong to the bag.
    """
    log_probabilities = torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))
    words = log_probabilities.gather(1, target.masked_fill(mask, 0)).masked_fill(mask, 0)
    return -(words.sum(1) / (~mask).sum(1).clamp(min=1)).sum()


@torch.no_grad()
def bag_recall(logits: Tensor, target: Tensor, mask: Tensor, top: int) -> Tensor:
    """Compute the share of each bag's distinct words among the `top` most probable words, summed over sentences.

    `|top ∩ bag| / |bag|`; Weng et al. (2020, Table 5) call it precision. The arguments are those of
    `bag_prediction_loss`. A sentence with an empty bag counts as 0.
    """
    probable = logits.topk(min(top, logits.size(1)), dim=1).indices
    chosen = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, probable, True)
    same = target.unsqueeze(2).eq(target.unsqueeze(1)) & ~mask.unsqueeze(1)
    distinct = ~mask & ~same.tril(-1).any(2)
    hits = chosen.gather(1, target.masked_fill(mask, 0)) & distinct
    return (hits.sum(1) / distinct.sum(1).clamp(min=1)).sum()
