"""Capsule routing of the logits of self-attention, the addition of the capsule-Transformer to a layer."""

from typing import Optional, Tuple

import torch
from torch import Tensor, nn

from capsule_routing.functions import horizontal_routing, in_float32, route_last_token, vertical_routing
from capsule_routing.modules.layers import zero_

Factors = Optional[Tuple[Tensor, Tensor]]


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
        self, logits: Tensor, padding_mask: Optional[Tensor] = None, factors: Factors = None
    ) -> Tuple[Optional[Tensor], Optional[Tensor]]:
        """Compute the capsules of a whole sentence, `Ω↑` and `Ω↔` `[B, H, L, L]`. A part that is off is None.

        Args:
            logits: `E` `[B, H, L, L]`, 0 at padded queries and keys.
            padding_mask: `[B, L]`, True marks padding.
            factors: queries and keys `[B, H, L, d]`, padded rows 0, with `E = q kᵀ`; used where this is faster.
        """
        vertical = None if self.acceptance is None else torch.mul(*self.accepted(logits, padding_mask))
        return vertical, self._horizontal(logits, padding_mask, factors)

    @in_float32  # converts half precision once for both parts, and casts the sum back once
    def forward(self, logits: Tensor, padding_mask: Optional[Tensor] = None, factors: Factors = None) -> Tensor:
        """Compute `E + Ω↑ + Ω↔` `[B, H, L, L]`. Arguments as in `capsules`."""
        routed = logits
        if self.acceptance is not None:
            acceptance, omega = self.accepted(logits, padding_mask)
            # A matrix product, because the gradients of its factors are products too. Those of `addcmul` are sums.
            routed = torch.baddbmm(logits.flatten(2), acceptance.flatten(1, 2), omega.flatten(2)).view_as(logits)
        horizontal = self._horizontal(logits, padding_mask, factors)
        return routed if horizontal is None else routed + horizontal

    @in_float32  # also for the sum of vote weights, which overflows float16 in a long sentence
    def accepted(self, logits: Tensor, padding_mask: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        """Compute the factors of `Ω↑ = λ_h Ω`, with `λ = softmax(W† [Σ_l B_{1→l}, …, Σ_l B_{H→l}] + b)` (Eq. 10-11).

        Returns:
            `λ` `[B, H, 1, 1]` and `Ω` `[B, 1, L, K]`.
        """
        assert self.acceptance is not None
        omega, weights = vertical_routing(logits, self.iterations, padding_mask=padding_mask)
        weight, bias = (part.to(weights.dtype) for part in (self.acceptance.weight, self.acceptance.bias))
        acceptance = nn.functional.linear(weights.sum(2), weight, bias).softmax(dim=-1)
        return acceptance[:, :, None, None], omega.unsqueeze(1)

    def _horizontal(self, logits: Tensor, padding_mask: Optional[Tensor], factors: Factors) -> Optional[Tensor]:
        if not self.horizontal:
            return None
        return horizontal_routing(
            logits, self.iterations, padding_mask=padding_mask, causal=self.causal, factors=factors
        )

    def forward_last(
        self, row: Tensor, queries: Optional[Tensor], keys: Optional[Tensor], logits: Tensor, scale: float
    ) -> Tensor:
        """Compute the last query's row of `forward`, `[B, H, 1, L]`. Arguments as in `route_last_token`."""
        return route_last_token(row, queries, keys, logits, self.iterations, scale=scale)
