"""Aggregation of a sentence into a fixed number of vectors: CapsNMT and its baseline (Wang et al. 2019, §2-3)."""

from typing import Optional

import torch
from torch import Tensor, nn

from capsule_routing.functions import RoutingResult, dot_product_agreement, dynamic_routing
from capsule_routing.functions.routing import by_output
from capsule_routing.functions.types import Mask
from capsule_routing.modules.layers import (
    cast_votes,
    check_positive,
    feed_forward,
    parameter,
    sinusoids,
    xavier_,
)


class CapsuleAggregation(nn.Module):
    """Route the states of a sentence, the children, to `M` parent capsules (Wang et al. 2019, Eq. 7-14).

    Children vote with `f(h_i, θ_j) = ReLU(h_i W_j)`. The coupling of a child is a softmax over the parents. The
    agreement is `g(c_j) · g(h_i)` with one network `g` for both (separable composition and scoring, Eq. 14), or
    `c_j · f(h_i, θ_j)` (Eq. 12). A number below 1 raises a ValueError.

    Args:
        embed_dim: size `d` of a child and of a parent.
        num_capsules: `M`.
        iterations: routing iterations `r`. With 1 there is no agreement, and `g` is not created.
        share_weights: one `W` for all iterations, instead of one for each.
        position_aware: add sinusoidal positions, counted from 1, to the children, and to the parents where an agreement
            reads them.
        separable_scoring: whether agreements use `g`.
        leaky: whether a child may go to no parent (the 2018 preprint).
        capsule_scale: factor for the capsules of the result. The norm of a squashed capsule is below 1, while the
            output of a layer norm has the norm `√d` and a position `√(d/2)`.
        result_positions: with `position_aware`, whether the positions of the parents are also added to the result.

    Parameters:
        vote_weight: `W_j^t`, `[r, M, d, d]`, or `[1, M, d, d]` if it is shared.
        score: `g`, `d → d → d`; only for separable scoring.
    """

    def __init__(
        self,
        embed_dim: int,
        num_capsules: int = 6,
        iterations: int = 3,
        share_weights: bool = False,
        position_aware: bool = True,
        separable_scoring: bool = True,
        leaky: bool = False,
        capsule_scale: float = 1.0,
        result_positions: bool = True,
    ):
        super().__init__()
        check_positive(embed_dim=embed_dim, num_capsules=num_capsules, iterations=iterations)
        self.num_capsules = num_capsules
        self.iterations = iterations
        self.position_aware = position_aware
        self.capsule_scale = capsule_scale
        self.result_positions = result_positions
        self.competition = "leaky" if leaky else "output"
        self.vote_weight = parameter(1 if share_weights else iterations, num_capsules, embed_dim, embed_dim)
        self.reset_parameters()
        self.score = feed_forward(embed_dim, embed_dim, embed_dim) if separable_scoring and iterations > 1 else None

    def reset_parameters(self) -> None:
        xavier_(self.vote_weight)

    def forward(self, hidden: Tensor, padding_mask: Mask = None, iterations: Optional[int] = None) -> RoutingResult:
        """Aggregate a sentence.

        Args:
            hidden: `h` `[B, I, d]`.
            padding_mask: `[B, I]`, True marks padding, on either side.
            iterations: stop after this number of routing iterations, from 1 to all; all by default.

        Returns:
            `RoutingResult(capsules [B, M, d], coupling [B, I, M])`; coupling is 0 at padding. The capsules are scaled
            and may have positions; `squashed` removes both. Another number of iterations raises a ValueError.
        """
        if iterations is not None and not 1 <= iterations <= self.iterations:
            raise ValueError(f"iterations must be from 1 to {self.iterations}, not {iterations}")
        parents = self._parent_positions(hidden)
        if self.position_aware:
            mask = hidden.new_zeros(1, hidden.size(1), dtype=torch.bool) if padding_mask is None else padding_mask
            places = (~mask).long().cumsum(1)  # the first word that is not padding has position 1
            hidden = hidden + sinusoids(places, hidden.size(-1)).to(hidden.dtype)
        votes = [by_output(cast_votes(hidden, weight).relu()) for weight in self.vote_weight]
        votes = (votes * self.iterations)[: iterations or self.iterations]
        children = None if self.score is None else self.score(hidden)

        def agreement(vote: Tensor, capsules: Tensor) -> Tensor:
            capsules = capsules + parents
            if self.score is None or children is None:
                return dot_product_agreement(vote, capsules)
            # The routing is in float32 or higher, but the network has the precision of the model.
            scored = self.score(capsules.to(self.vote_weight.dtype))
            return children.to(capsules.dtype) @ scored.to(capsules.dtype).transpose(1, 2)

        routed = dynamic_routing(
            votes, len(votes), padding_mask=padding_mask, competition=self.competition, agreement=agreement
        )
        scaled = self.capsule_scale * routed.capsules
        return routed._replace(capsules=scaled + parents if self.result_positions else scaled)

    def squashed(self, capsules: Tensor) -> Tensor:
        """Return the squashed capsules `[B, M, d]` of a result, without positions and scaling."""
        if self.result_positions:
            capsules = capsules - self._parent_positions(capsules)
        return capsules / self.capsule_scale

    def _parent_positions(self, like: Tensor) -> Tensor:
        """Return the sinusoids `[M, d]` of the parents' positions, or 0, in the precision of `like` `[..., d]`."""
        if not self.position_aware:
            return like.new_zeros(())
        numbers = torch.arange(1, self.num_capsules + 1, device=like.device)
        return sinusoids(numbers, like.size(-1)).to(like.dtype)


class SimpleAggregation(nn.Module):
    """The baseline without parameters: `C = [h_max, h_avg, h_1, h_L]` of the words without padding (Eq. 2-4)."""

    num_capsules = 4
    capsule_scale = 1.0

    def forward(self, hidden: Tensor, padding_mask: Mask = None, iterations: Optional[int] = None) -> RoutingResult:
        """Aggregate a sentence as `CapsuleAggregation.forward`. `M` is 4, the coupling is None."""
        if padding_mask is None:
            padding_mask = hidden.new_zeros(hidden.shape[:2], dtype=torch.bool)
        valid = (~padding_mask).unsqueeze(-1)
        number = valid.sum(1)
        highest = hidden.masked_fill(~valid, torch.finfo(hidden.dtype).min).amax(1)
        mean = (hidden * valid).sum(1) / number.clamp(min=1)
        order = valid.cumsum(1) * valid  # position of each word, 0 at padding
        ends = [(hidden * (order == place)).sum(1) for place in (1, number.unsqueeze(1))]
        return RoutingResult(torch.stack([highest, mean, *ends], dim=1), None)  # type: ignore[arg-type]
