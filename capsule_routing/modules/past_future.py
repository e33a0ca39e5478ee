"""Separation of a source sentence into translated and untranslated words, at every target step; what states get of it.

Guided dynamic routing and its two baselines (Zheng et al. 2019, §3.1 and Fig. 6) have one interface. `project` computes
what does not depend on the target, once for each sentence, also in decoding. `route` computes the rest. Results are in
the order PAST, FUTURE, redundant.
"""

import math
from typing import Any, Collection, Dict, Mapping, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from capsule_routing import functions as routing
from capsule_routing.functions import RoutingResult, in_float32, squash
from capsule_routing.functions.routing import by_output
from capsule_routing.functions.types import Mask
from capsule_routing.modules.layers import (
    cast_votes,
    check_positive,
    feed_forward,
    is_bare,
    normal_,
    parameter,
    xavier,
    xavier_,
    zero_,
)


class Projected(NamedTuple):
    """What the routing computes from the source sentence alone.

    Attributes:
        values: the vectors that are summed, `[B, I, N, D]`.
        keys: the vectors that states are compared with, `[B, I, N', D']`; None if nothing is compared.
        exponentials: `squared_exponential(keys)`, if the comparison needs it.
        first_part: `[B, N, D]`, the contribution of the first capsules to the first comparison.
    """

    values: Tensor
    keys: Optional[Tensor] = None
    exponentials: Optional[Tensor] = None
    first_part: Optional[Tensor] = None


class PastFutureRouting(nn.Module):
    """The common interface of the three ways to separate PAST from FUTURE.

    A number of capsules, a size or a number of iterations below 1 raises a ValueError.
    """

    def project(self, source: Tensor, padding_mask: Mask = None) -> Projected:
        """Compute what depends only on the source; arguments as in `forward`."""
        raise NotImplementedError

    def route(self, projected: Projected, state: Tensor, padding_mask: Mask = None) -> RoutingResult:
        """Compute `forward` from the result of `project`."""
        raise NotImplementedError

    def forward(
        self,
        source: Optional[Tensor],
        state: Optional[Tensor],
        padding_mask: Mask = None,
        projected: Optional[Projected] = None,
    ) -> Any:
        """Separate a source sentence for every decoder state.

        Args:
            source: `h` `[B, I, source_dim]`; not read with `projected`.
            state: `z` `[B, T, state_dim]`; None for the first half alone.
            padding_mask: `[B, I]`, True marks padding of the source.
            projected: the result of the first half, from an earlier call.

        Returns:
            `RoutingResult` with capsules `[B, T, N, D]` and coupling `[B, T, I, M]`, 0 at padding. `M` is the number of
            capsules `N`, or of classes of CLF. Without states: `Projected`.
        """
        if projected is None:
            assert source is not None
            projected = self.project(source, padding_mask)
        return projected if state is None else self.route(projected, state, padding_mask)


class GuidedDynamicRouting(PastFutureRouting):
    """Guided dynamic routing (Zheng et al. 2019, Alg. 1): `J` capsules compete for each source word.

    Args:
        source_dim: size of a source word's `h_i`.
        state_dim: size of a decoder state `z_t`.
        num_capsules: `J`, the number of all capsules: 6 with two redundant ones, 4 without.
        capsule_dim: `d_c`.
        iterations: routing iterations `r`. With 1 there is no agreement, and its parameters are not created.

    Parameters:
        vote_weight: `W_j` of Eq. 5, `[J, source_dim, d_c]`.
        agreement_weight: `W_b` of Eq. 7, `[d_c, state_dim + 2 d_c]`, columns in the order state, vote, capsule.
        agreement_vector: `w` of Eq. 7, `[d_c]`.
    """

    compiled = False  # `compile_routing` sets it

    def __init__(self, source_dim: int, state_dim: int, num_capsules: int, capsule_dim: int, iterations: int = 3):
        super().__init__()
        check_positive(num_capsules=num_capsules, capsule_dim=capsule_dim, iterations=iterations)
        self.state_dim = state_dim
        self.iterations = iterations
        self.vote_weight = parameter(num_capsules, source_dim, capsule_dim)
        self.agreement_weight = self.agreement_vector = None
        if iterations > 1:
            self.agreement_weight = parameter(capsule_dim, state_dim + 2 * capsule_dim)
            self.agreement_vector = parameter(capsule_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        xavier_(self.vote_weight)
        if self.agreement_weight is not None and self.agreement_vector is not None:
            xavier_(self.agreement_weight)
            normal_(self.agreement_vector)

    def project(self, source: Tensor, padding_mask: Mask = None) -> Projected:
        """Compute the votes `v_ij` `[B, I, J, d_c]`, 0 at padding, and the products of `W_b` with them."""
        source = source if padding_mask is None else source.masked_fill(padding_mask.unsqueeze(-1), 0)
        votes = cast_votes(source, self.vote_weight)
        values = by_output(votes)
        if self.agreement_weight is None:
            return Projected(values)
        _, of_vote, of_capsule = self._blocks()
        keys = votes @ of_vote.t()
        capsules = routing.dynamic_routing(values, 1).capsules
        return Projected(values, keys, routing.squared_exponential(keys), capsules @ of_capsule.t())

    def route(self, projected: Projected, state: Tensor, padding_mask: Mask = None) -> RoutingResult:
        if self.agreement_weight is None:  # the result is the same at every step
            mask = None if padding_mask is None else padding_mask.unsqueeze(1)
            routed = routing.dynamic_routing(projected.values.unsqueeze(1), 1, padding_mask=mask)
            return RoutingResult(*(part.expand(-1, state.size(1), -1, -1) for part in routed))
        assert projected.first_part is not None and self.agreement_vector is not None
        of_state, _, of_capsule = self._blocks()
        return routing.guided_routing(
            projected.values,
            projected.keys,
            projected.first_part,
            state @ of_state.t(),
            of_capsule,
            self.agreement_vector,
            self.iterations,
            padding_mask=padding_mask,
            exponentials=projected.exponentials,
            compiled=self.compiled and torch.is_grad_enabled(),
        )

    def _blocks(self) -> Tuple[Tensor, ...]:
        """The blocks of `W_b` for the state, the vote and the capsule."""
        assert self.agreement_weight is not None
        capsule_dim = self.agreement_weight.size(0)
        return self.agreement_weight.split((self.state_dim, capsule_dim, capsule_dim), dim=1)


class PastFutureClassifier(PastFutureRouting):
    """CLF (Zheng et al. 2019, Fig. 6): a classifier `softmax(U tanh(W [z_t; h_i]))` of each source word.

    Returns 2 capsules, squashed sums of votes as in Eq. 4, and a coupling over the classes.

    Args:
        source_dim, state_dim: as for `GuidedDynamicRouting`.
        content_dim: size of PAST and of FUTURE.
        inner_dim: rows of `W`.
        redundant: whether there is a third class for words that are neither.
    """

    def __init__(self, source_dim: int, state_dim: int, content_dim: int, inner_dim: int, redundant: bool = True):
        super().__init__()
        check_positive(content_dim=content_dim, inner_dim=inner_dim)
        self.vote_weight = xavier(2, source_dim, content_dim)
        self.source_projection = nn.Linear(source_dim, inner_dim, bias=False)
        self.state_projection = nn.Linear(state_dim, inner_dim, bias=False)
        self.class_weight = xavier(3 if redundant else 2, inner_dim)

    def reset_parameters(self) -> None:
        xavier_(self.vote_weight)
        xavier_(self.class_weight)

    def project(self, source: Tensor, padding_mask: Mask = None) -> Projected:
        keys = self.source_projection(source).unsqueeze(2)
        return Projected(cast_votes(source, self.vote_weight), keys, routing.squared_exponential(keys))

    def route(self, projected: Projected, state: Tensor, padding_mask: Mask = None) -> RoutingResult:
        return _classify(projected, self.state_projection(state).unsqueeze(2), self.class_weight, padding_mask)


class PastFutureAttention(PastFutureRouting):
    """ATTN (Zheng et al. 2019, Fig. 6): two single-head dot-product attentions, one for PAST and one for FUTURE.

    Returns 2 capsules that are not squashed, and a coupling that sums to 1 over the source words for each capsule.

    The arguments are as for `PastFutureClassifier`.
    """

    def __init__(self, source_dim: int, state_dim: int, content_dim: int):
        super().__init__()
        check_positive(content_dim=content_dim)
        self.query_weight = parameter(2, state_dim, content_dim)
        self.key_weight = parameter(2, source_dim, content_dim)
        self.value_weight = parameter(2, source_dim, content_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.query_weight, self.key_weight, self.value_weight):
            xavier_(weight)

    def project(self, source: Tensor, padding_mask: Mask = None) -> Projected:
        return Projected(cast_votes(source, self.value_weight), cast_votes(source, self.key_weight))

    def route(self, projected: Projected, state: Tensor, padding_mask: Mask = None) -> RoutingResult:
        return _attend(projected, cast_votes(state, self.query_weight), padding_mask)


@in_float32
def _classify(projected: Projected, states: Tensor, weight: Tensor, padding_mask: Mask) -> RoutingResult:
    """Values `[B, I, 2, D]`, keys `[B, I, 1, K]`, states `[B, T, 1, K]` and weight `[classes, K]`."""
    scores = routing.additive_scores(states, projected.keys, weight, projected.exponentials).squeeze(3)
    coupling = routing.masked_softmax(scores, -1, None if padding_mask is None else padding_mask[:, None, :, None])
    return RoutingResult(squash(torch.einsum("btin,bind->btnd", coupling[..., :2], projected.values)), coupling)


@in_float32
def _attend(projected: Projected, queries: Tensor, padding_mask: Mask) -> RoutingResult:
    """Values and keys `[B, I, 2, D]`, queries `[B, T, 2, D]`."""
    scores = torch.einsum("btnd,bind->btin", queries, projected.keys) / math.sqrt(queries.size(-1))
    coupling = routing.masked_softmax(scores, 2, None if padding_mask is None else padding_mask[:, None, :, None])
    return RoutingResult(torch.einsum("btin,bind->btnd", coupling, projected.values), coupling)


class PastFutureOutput(NamedTuple):
    """The value of a decoder's `net_output[1]["past_future"]`.

    Attributes:
        state: the decoder states `z` `[B, T, C]` before PAST and FUTURE are added.
        past: the concatenated PAST capsules `Ω^P` `[B, T, P]`.
        future: the concatenated FUTURE capsules `Ω^F` `[B, T, P]`.
        coupling: the share of each source word in each capsule, `[B, T, I, M]`.
        capsules_per_content: the number of PAST capsules; they are followed by as many FUTURE capsules.
        heads: what the heads of the guided losses computed, for PAST and FUTURE, by the name of the loss: `W^P Ω^P` and
            `W^F Ω^F` `[B, T, C]` of "bow", the weights or layers of "bca". Empty while decoding.
    """

    state: Tensor
    past: Tensor
    future: Tensor
    coupling: Tensor
    capsules_per_content: int
    heads: Mapping[str, Tuple[Any, ...]] = {}

    @property
    def assignment(self) -> Tensor:
        """The shares of each source word in PAST, FUTURE and, if there are redundant capsules, neither.

        `[B, T, I, 3]`, or `[B, T, I, 2]` without redundant capsules. The shares of a word sum to 1. With
        `PastFutureAttention` they do not: there the shares of each content sum to 1 over the source words.
        """
        count = self.capsules_per_content
        groups = self.coupling.tensor_split((count, 2 * count), dim=-1)
        return torch.stack([group.sum(-1) for group in groups if group.size(-1)], dim=-1)


class HolisticContext(nn.Module):
    """`o = z + FeedForward(z, Ω^P, Ω^F)`, and the heads of the guided losses.

    The last feed-forward layer starts at 0, so that a fresh model computes the same as one without this module.

    Args:
        routing: computes the capsules.
        capsules_per_content: the number of PAST capsules, which come first; as many FUTURE capsules follow.
        content_dim: size of PAST, and of FUTURE.
        state_dim: size of `z` and `o`.
        ffn_dim: inner size of the feed-forward layers.
        heads: "none", "bow" (`W_BoW`), "bca" (`W_BCA`) or "both"; another one raises a ValueError.
        reduction: for which form of the guided losses the heads are. "mean": `W_BCA` maps contents to states. "sum" and
            "printed": it maps states to contents. Another one raises a ValueError.
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
        if reduction not in ("mean", "sum", "printed"):
            raise ValueError(f"reduction must be mean, sum or printed, not {reduction}")
        self.routing = routing
        self.capsules_per_content = capsules_per_content
        self.feed_forward = feed_forward(state_dim + 2 * content_dim, ffn_dim, state_dim)
        self.reduction = reduction
        mapped = (content_dim, state_dim) if reduction == "mean" else (state_dim, content_dim)
        self.bow = _pair_of_heads(content_dim, state_dim) if heads in ("bow", "both") else None
        self.bca = _pair_of_heads(*mapped) if heads in ("bca", "both") else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        zero_(self.feed_forward[2])

    def context(
        self, state: Tensor, projected: Projected, padding_mask: Mask = None
    ) -> Tuple[Tensor, PastFutureOutput]:
        """Add PAST and FUTURE to decoder states.

        Args:
            state: `z` `[B, T, C]`.
            projected: the result of the routing's `project` for the `B` sentences.
            padding_mask: `[B, I]`, True marks padding of the source.

        Returns:
            `o` `[B, T, C]`, and the states, capsules and coupling that it was computed from.
        """
        routed = self.routing(None, state, padding_mask, projected)
        count = self.capsules_per_content
        contents = routed.capsules[:, :, : 2 * count].flatten(2)
        output = state + self.feed_forward(torch.cat([state, contents], dim=-1))
        past, future = contents.chunk(2, dim=-1)
        return output, PastFutureOutput(state, past, future, routed.coupling, count)

    def predicted_bags(self, routed: PastFutureOutput) -> Tuple[Tensor, Tensor]:
        """Return `W^P Ω^P` and `W^F Ω^F` `[B, T, C]`, of a module with the head "bow"."""
        assert self.bow is not None
        return self.bow["past"](routed.past), self.bow["future"](routed.future)

    def with_heads(self, routed: PastFutureOutput, names: Optional[Collection[str]] = None) -> PastFutureOutput:
        """Add what the heads of the losses compute; by default without heads that are frozen.

        Views stand for the weights that a loss applies itself. So all trained parameters take part in the forward pass.
        A layer with an adapter, for instance, stands for itself.

        Args:
            routed: the second result of `context`.
            names: the heads, of those that there are.
        """
        heads: Dict[str, Tuple[Any, ...]] = {}
        if self.bow is not None and (_trained(self.bow) if names is None else "bow" in names):
            heads["bow"] = self.predicted_bags(routed)
        if self.bca is not None and (_trained(self.bca) if names is None else "bca" in names):
            linears: Tuple[Any, ...] = (self.bca["past"], self.bca["future"])
            heads["bca"] = tuple(
                linear.weight.view_as(linear.weight) if is_bare(linear) else linear for linear in linears
            )
        return routed._replace(heads=heads)


def _trained(head: nn.Module) -> bool:
    return all(weight.requires_grad for weight in head.parameters())


def _pair_of_heads(input_dim: int, output_dim: int) -> nn.ModuleDict:
    return nn.ModuleDict({name: nn.Linear(input_dim, output_dim, bias=False) for name in ("past", "future")})
