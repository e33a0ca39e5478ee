"""A decoder's output with PAST and FUTURE in it (Zheng et al. 2019, §3.2), and the parameters of the guided losses."""

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from fairseq_capsule.modules.feed_forward import feed_forward
from fairseq_capsule.modules.past_future import PastFutureRouting, SourceParts


class PastFutureOutput(NamedTuple):
    """What a decoder's `net_output[1]["past_future"]` holds.

    Attributes:
        state: the decoder states `z` `[B, T, C]` before PAST and FUTURE were taken in.
        past: the concatenated PAST capsules `Ω^P` `[B, T, P]`.
        future: the concatenated FUTURE capsules `Ω^F` `[B, T, P]`.
        coupling: how much of each source word went to each capsule, `[B, T, I, M]`.
        capsules_per_content: how many of the capsules are PAST; as many that follow are FUTURE.
    """

    state: Tensor
    past: Tensor
    future: Tensor
    coupling: Tensor
    capsules_per_content: int

    @property
    def assignment(self) -> Tensor:
        """How much of each source word went to PAST, to FUTURE and, where there is such a thing, to neither:
        `[B, T, I, 3]`, or `[B, T, I, 2]`. Two attentions share no word out: there each of the two sums to 1 over the
        source."""
        groups = self.coupling.split(self.capsules_per_content, dim=-1)
        shares = [group.sum(-1) for group in groups[:2]]
        redundant = self.coupling[..., 2 * self.capsules_per_content :]
        return torch.stack(shares + ([redundant.sum(-1)] if redundant.size(-1) else []), dim=-1)


class HolisticContext(nn.Module):
    """`o = z + FeedForward(z, Ω^P, Ω^F)`, and the heads of the guided losses.

    The feed-forward layers end in zeros: a model begins as the one that has nothing of this.

    Args:
        routing: what gives the capsules.
        capsules_per_content: how many of its first capsules are PAST; as many that follow are FUTURE.
        content_dim: size of PAST, and of FUTURE.
        state_dim: size of `z` and `o`.
        ffn_dim: inner size of the feed-forward layers.
        heads: "none", "bow" (`W_BoW`), "bca" (`W_BCA`) or "both".

    Raises:
        ValueError: heads of another name.
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
    ):
        super().__init__()
        if heads not in ("none", "bow", "bca", "both"):
            raise ValueError(f"heads must be none, bow, bca or both, not {heads}")
        self.routing = routing
        self.capsules_per_content = capsules_per_content
        self.feed_forward = feed_forward(state_dim + 2 * content_dim, ffn_dim, state_dim, zero=True)
        self.bow = self.bca = None
        if heads in ("bow", "both"):
            self.bow = _pair_of_heads(content_dim, state_dim)
        if heads in ("bca", "both"):
            self.bca = _pair_of_heads(state_dim, content_dim)

    def context(
        self, state: Tensor, parts: SourceParts, padding_mask: Optional[Tensor] = None
    ) -> Tuple[Tensor, PastFutureOutput]:
        """Take PAST and FUTURE in.

        Args:
            state: `z` `[B, T, C]`.
            parts: what the routing prepared of `B` sentences; or of `B / n`, where `n` neighbours of a batch have one
                source, as the beams of a sentence; `T` is 1 then.
            padding_mask: `[B, I]`, True marks padding of the source.

        Returns:
            `o` `[B, T, C]` and what it was made of.
        """
        # The beams of a sentence are to its source what the steps of a target are.
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
