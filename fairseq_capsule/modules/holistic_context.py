"""The decoder output with PAST and FUTURE added (Zheng et al. 2019, §3.2), and parameters of the guided losses."""

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from fairseq_capsule.modules.feed_forward import feed_forward
from fairseq_capsule.modules.past_future import PastFutureRouting, SourceParts


class PastFutureOutput(NamedTuple):
    """The value of a decoder's `net_output[1]["past_future"]`.

    Attributes:
        state: the decoder states `z` `[B, T, C]` before PAST and FUTURE are added.
        past: the concatenated PAST capsules `Ω^P` `[B, T, P]`.
        future: the concatenated FUTURE capsules `Ω^F` `[B, T, P]`.
        coupling: the share of each source word in each capsule, `[B, T, I, M]`.
        capsules_per_content: the number of PAST capsules; they are followed by as many FUTURE capsules.
    """

    state: Tensor
    past: Tensor
    future: Tensor
    coupling: Tensor
    capsules_per_content: int

    @property
    def assignment(self) -> Tensor:
        """The shares of each source word in PAST, FUTURE and, if there are redundant capsules, neither.

        `[B, T, I, 3]`, or `[B, T, I, 2]` without redundant capsules. The shares of a word sum to 1. With
        `PastFutureAttention` they do not: there the shares of each content sum to 1 over the source words.
        """
        groups = self.coupling.split(self.capsules_per_content, dim=-1)
        shares = [group.sum(-1) for group in groups[:2]]
        redundant = self.coupling[..., 2 * self.capsules_per_content :]
        return torch.stack(shares + ([redundant.sum(-1)] if redundant.size(-1) else []), dim=-1)


class HolisticContext(nn.Module):
    """`o = z + FeedForward(z, Ω^P, Ω^F)`, and the heads of the guided losses.

    The last feed-forward layer starts at 0, so that a fresh model computes the same as one without this module.

    Args:
        routing: computes the capsules.
        capsules_per_content: the number of PAST capsules, which come first; as many FUTURE capsules follow.
        content_dim: size of PAST, and of FUTURE.
        state_dim: size of `z` and `o`.
        ffn_dim: inner size of the feed-forward layers.
        heads: "none", "bow" (`W_BoW`), "bca" (`W_BCA`) or "both".
        reduction: for which form of the guided losses the heads are. "mean": `W_BCA` maps contents to states. "sum",
            the printed formula: it maps states to contents.

    Raises:
        ValueError: `heads` or `reduction` is none of these.
    """

    def __init__(
        self,
        routing: PastFutureRouting,
        *,
        capsules_per_content: int,
        content_dim: int,
        state_dim: int,
        ffn_dim: int,
        heads: str = "none",
        reduction: str = "mean",
    ):
        super().__init__()
        if heads not in ("none", "bow", "bca", "both"):
            raise ValueError(f"heads must be none, bow, bca or both, not {heads}")
        if reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be mean or sum, not {reduction}")
        self.routing = routing
        self.capsules_per_content = capsules_per_content
        self.feed_forward = feed_forward(state_dim + 2 * content_dim, ffn_dim, state_dim, zero=True)
        self.reduction = reduction
        self.bow = self.bca = None
        if heads in ("bow", "both"):
            self.bow = _pair_of_heads(content_dim, state_dim)
        if heads in ("bca", "both"):
            self.bca = _pair_of_heads(*((content_dim, state_dim) if reduction == "mean" else (state_dim, content_dim)))

    def context(
        self, state: Tensor, parts: SourceParts, padding_mask: Optional[Tensor] = None
    ) -> Tuple[Tensor, PastFutureOutput]:
        """Add PAST and FUTURE to decoder states.

        Args:
            state: `z` `[B, T, C]`.
            parts: the result of the routing's `prepare` for `B` sentences. In beam search, for `B / n` sentences, if
                each group of `n` consecutive rows has the same source; `T` is 1 then.
            padding_mask: `[B, I]`, True marks padding of the source.

        Returns:
            `o` `[B, T, C]`, and the states, capsules and coupling that it was computed from.
        """
        # The hypotheses of a sentence share its source, as the steps of a target do: they take the place of the steps.
        beams = len(state) // len(parts.values)
        mask = padding_mask if padding_mask is None or beams == 1 else padding_mask[::beams]
        routed = self.routing.route(parts, state if beams == 1 else state.view(-1, beams, state.size(-1)), mask)
        count = self.capsules_per_content
        contents = routed.capsules[:, :, : 2 * count].flatten(2).reshape(*state.shape[:2], -1)
        output = state + self.feed_forward(torch.cat([state, contents], dim=-1))
        past, future = contents.chunk(2, dim=-1)
        coupling = routed.coupling.reshape(*state.shape[:2], *routed.coupling.shape[2:])
        return output, PastFutureOutput(state, past, future, coupling, count)


def _pair_of_heads(input_dim: int, output_dim: int) -> nn.ModuleDict:
    return nn.ModuleDict({name: nn.Linear(input_dim, output_dim, bias=False) for name in ("past", "future")})
