"""Capsule routing of the logits of self-attention, the addition of the capsule-Transformer to a layer."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from capsule_routing.functions import horizontal_routing, in_float32, vertical_routing
from capsule_routing.functions.compiled import compiled_form, is_traced
from capsule_routing.functions.types import Factors, Mask
from capsule_routing.modules.layers import is_bare, zero_

# In training, the routing of longer sentences is computed again in the backward pass. At this length Base would keep
# 1.5 times as much for it as without routing.
LONGEST_SAVED = 56


class AttentionRouting(nn.Module):
    """Vertical and horizontal routing of attention logits (Duan et al. 2020, §3.4).

    `forward` computes `E + Ω↑ + Ω↔`, the logits before the mask and the softmax.

    Args:
        num_heads: the number of heads `H`.
        vertical: whether heads are routed to positions.
        horizontal: whether positions are routed to heads. If both parts are off, a ValueError is raised.
        iterations: routing iterations; fewer than 1 raise a ValueError.
        causal: whether a query cannot attend to later keys, as in a decoder. With the vertical part, which would reveal
            later words (§3.4.3), it raises a ValueError.

    Parameters:
        acceptance: `W†` and `b` of Eq. 11, `H·H + H` numbers; only with the vertical part. They start at 0, so that
            each head accepts the same share.
    """

    compiled = False  # `compile_routing` sets it

    def __init__(
        self,
        num_heads: int,
        *,
        vertical: bool = True,
        horizontal: bool = True,
        iterations: int = 3,
        causal: bool = False,
    ):
        super().__init__()
        if iterations < 1:
            raise ValueError(f"iterations must be at least 1, not {iterations}")
        if not (vertical or horizontal):
            raise ValueError("attention routing needs its vertical part, its horizontal part or both")
        if vertical and causal:
            raise ValueError("vertical routing under a causal mask would show later words to earlier ones")
        self.horizontal = horizontal
        self.iterations = iterations
        self.causal = causal
        self.acceptance: Optional[nn.Linear] = None
        if vertical:
            self.acceptance = nn.Linear(num_heads, num_heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.acceptance is not None:
            zero_(self.acceptance)

    def capsules(
        self, logits: Tensor, padding_mask: Mask = None, factors: Factors = None
    ) -> Tuple[Optional[Tensor], Optional[Tensor]]:
        """Compute the capsules of a whole sentence, `Ω↑` and `Ω↔` `[B, H, L, L]`. A part that is off is None.

        Args:
            logits: `E` `[B, H, L, L]`, 0 at padded queries and keys.
            padding_mask: `[B, L]`, True marks padding.
            factors: queries and keys `[B, H, L, d]`, padded rows 0, with `E = q kᵀ`; used where this is faster.
        """
        vertical = horizontal = None
        if self.acceptance is not None:
            vertical = torch.mul(*self.accepted(logits, padding_mask))
        if self.horizontal:
            options: Any = {"padding_mask": padding_mask, "causal": self.causal, "factors": factors}
            horizontal = horizontal_routing(logits, self.iterations, **options)
        return vertical, horizontal

    def forward(self, logits: Tensor, padding_mask: Mask = None, factors: Factors = None) -> Tensor:
        """Compute `E + Ω↑ + Ω↔` `[B, H, L, L]`. Arguments as in `capsules`."""
        if self.compiled and torch.is_grad_enabled() and not is_traced():
            if padding_mask is None:  # torch compiles few variants of a function, then it runs the function as it is
                padding_mask = logits.new_zeros(logits.size(0), logits.size(2), dtype=torch.bool)
            return compiled_form(AttentionRouting._routed)(self, logits, padding_mask, factors)
        if torch.is_grad_enabled() and logits.size(3) > LONGEST_SAVED:
            options: Any = {"use_reentrant": False, "preserve_rng_state": False}  # nothing in it is random
            return checkpoint(self._routed, logits, padding_mask, factors, **options)
        return self._routed(logits, padding_mask, factors)

    @in_float32  # converts half precision once for both parts, and casts the sum back once
    def _routed(self, logits: Tensor, padding_mask: Mask, factors: Factors) -> Tensor:
        for part in self.capsules(logits, padding_mask, factors):
            if part is not None:
                logits = logits + part
        return logits

    def forward_next(self, rows: Tensor, padding_mask: Mask, earlier: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        """Compute the rows of `forward` of new positions at the end, under the causal mask.

        A row depends only on rows of earlier positions.

        Args:
            rows: their logits `[B, H, N, L]`; one position a step is `N = 1`.
            padding_mask: not used: logits are 0 at padding.
            earlier: the second result of the step before, `[B, H, L - N, L - N]`; None at the first step.

        Returns:
            The rows `[B, H, N, L]`, and the logits of all positions so far, `[B, H, L, L]`, 0 above the diagonal.
        """
        number, length = rows.shape[2:]
        logits = rows.new_zeros(*rows.shape[:2], length, length) if earlier is None else pad(earlier, (0, number) * 2)
        logits[:, :, length - number :] = rows.tril(length - number)
        return rows + horizontal_routing(logits, self.iterations, last=number), logits

    @in_float32  # also for the sum of vote weights, which overflows float16 in a long sentence
    def accepted(self, logits: Tensor, padding_mask: Mask = None) -> Tuple[Tensor, Tensor]:
        """Compute the factors of `Ω↑ = λ_h Ω`, with `λ = softmax(W† [Σ_l B_{1→l}, …, Σ_l B_{H→l}] + b)` (Eq. 10-11).

        Returns:
            `λ` `[B, H, 1, 1]` and `Ω` `[B, 1, L, K]`.
        """
        assert self.acceptance is not None
        omega, weights = vertical_routing(logits, self.iterations, padding_mask=padding_mask)
        sums = weights.sum(2)
        if is_bare(self.acceptance):
            weight, bias = (part.to(weights.dtype) for part in (self.acceptance.weight, self.acceptance.bias))
            acceptance = nn.functional.linear(sums, weight, bias)
        else:
            of_layer = next(self.acceptance.parameters(), sums)  # a quantised layer has none, and reads float32
            acceptance = self.acceptance(sums.to(of_layer.dtype)).to(weights.dtype)
        return acceptance.softmax(dim=-1)[:, :, None, None], omega.unsqueeze(1)
