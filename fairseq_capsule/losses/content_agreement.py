"""Bilingual content agreement: PAST and FUTURE agree with the decoder states (Zheng et al. 2019, §3.3)."""

from typing import NamedTuple, Optional

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
    """Compute the content agreement loss of a batch as the paper prints it, summed over sentences and dimensions.

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
    # In float16 a sum over a sentence, or a squared distance, may overflow.
    exact = torch.promote_types(state.dtype, torch.float32)
    with without_autocast(state.device.type):
        means = _means(state.to(exact), padding_mask)
        distances = (past.to(exact) - means.until @ past_weight.to(exact).t()).square().sum(-1)
        distances = distances + (future.to(exact) - means.from_here @ future_weight.to(exact).t()).square().sum(-1)
        return (distances * means.step_weights).sum()


def mean_content_agreement_loss(
    past: Tensor,
    future: Tensor,
    state: Tensor,
    past_weight: Tensor,
    future_weight: Tensor,
    padding_mask: Optional[Tensor] = None,
) -> Tensor:
    """Compute the content agreement loss of a batch with capsules mapped to states, as a mean over dimensions.

        L = (1/(T·C)) Σ_t ( ‖W^P Ω^P_t − mean(z_1 … z_t)‖² + ‖W^F Ω^F_t − mean(z_t … z_T)‖² )

    It is summed over sentences.

    Args:
        past_weight, future_weight: `W^P` and `W^F`, `[C, P]`.
        past, future, state, padding_mask: as for `content_agreement_loss`.

    Returns:
        A scalar of at least float32.
    """
    exact = torch.promote_types(state.dtype, torch.float32)
    with without_autocast(state.device.type):
        means = _means(state.to(exact), padding_mask)
        distances = (past.to(exact) @ past_weight.to(exact).t() - means.until).square().mean(-1)
        distances = distances + (future.to(exact) @ future_weight.to(exact).t() - means.from_here).square().mean(-1)
        return (distances * means.step_weights).sum()


class _Means(NamedTuple):
    """Means of decoder states.

    Attributes:
        until: `mean(z_1 … z_t)` `[B, T, C]`.
        from_here: `mean(z_t … z_T)` `[B, T, C]`.
        step_weights: `[B, T]`, 1/T at the words of a sentence, 0 at padding.
    """

    until: Tensor
    from_here: Tensor
    step_weights: Tensor


def _means(state: Tensor, padding_mask: Optional[Tensor]) -> _Means:
    valid = state.new_ones(state.shape[:2], dtype=torch.bool) if padding_mask is None else ~padding_mask
    state = state.masked_fill(~valid.unsqueeze(-1), 0)
    number = valid.cumsum(1).unsqueeze(-1)
    length = number[:, -1:]
    until = state.cumsum(1)
    from_here = until[:, -1:] - until + state
    return _Means(
        until / number.clamp(min=1),
        from_here / (length - number + 1),
        valid.to(state.dtype) / length.squeeze(-1).clamp(min=1),
    )
