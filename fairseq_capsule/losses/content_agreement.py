"""Bilingual content agreement: PAST and FUTURE agree with the decoder states (Zheng et al. 2019, §3.3)."""

from typing import Optional

import torch
from torch import Tensor

from fairseq_capsule.routing.autocast import without_autocast


def content_agreement_loss(
    past: Tensor,
    future: Tensor,
    state: Tensor,
    past_weight: Tensor,
    future_weight: Tensor,
    padding_mask: Optional[Tensor] = None,
) -> Tensor:
    """Compute the content agreement loss of a batch, summed over sentences and dimensions.

        L = (1/T) Σ_t ( ‖Ω^P_t − W^P mean(z_1 … z_t)‖² + ‖Ω^F_t − W^F mean(z_t … z_T)‖² )

    Args:
        past: `Ω^P` `[B, T, P]`.
        future: `Ω^F` `[B, T, P]`.
        state: `z` `[B, T, C]`.
        past_weight, future_weight: `W^P` and `W^F`, `[P, C]`.
        padding_mask: `[B, T]`, True marks padding of the target, on either side.

    Returns:
        A scalar of at least float32.
    """
    valid = (
        torch.ones(state.shape[:2], dtype=torch.bool, device=state.device) if padding_mask is None else ~padding_mask
    )
    # In float16 a sum over a sentence, or a squared distance, may overflow.
    exact = torch.promote_types(state.dtype, torch.float32)
    with without_autocast(state.device.type):
        state = state.to(exact).masked_fill(~valid.unsqueeze(-1), 0)
        number = valid.cumsum(1).unsqueeze(-1)
        length = number[:, -1:]
        until = state.cumsum(1)
        from_here = until[:, -1:] - until + state
        distances = [
            (capsules.to(exact) - mean @ weight.to(exact).t()).square().sum(-1)
            for capsules, mean, weight in (
                (past, until / number.clamp(min=1), past_weight),
                (future, from_here / (length - number + 1), future_weight),
            )
        ]
        return ((distances[0] + distances[1]) / length.squeeze(-1).clamp(min=1)).masked_fill(~valid, 0).sum()
