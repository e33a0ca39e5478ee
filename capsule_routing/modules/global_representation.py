"""One vector for a sequence: words are routed to capsules, and the capsules are pooled (Weng et al. 2020, §2.1).

The vectors of several layers do not depend on each other: `together` computes them with as many kernels as for one.
"""

from typing import Any, Iterable, Optional, Sequence

import torch
from torch import Tensor, nn

from capsule_routing.functions import RoutingResult, dynamic_routing
from capsule_routing.functions.types import Mask
from capsule_routing.modules import layers

POOLINGS = ("attentive", "mean", "concat")


class CapsulePooling(nn.Module):
    """The vector of one layer's states (Weng et al. 2020, Eq. 2-9).

    Words compete for a capsule: its coupling is a softmax over the words (Eq. 5). There are three poolings of the
    capsules `u_k`: attentive, `FFN_o(Σ_k a_k u_k)` with `a = softmax_k(FFN_q(mean_k u_k) · u_k)`; `FFN_o` of their
    mean; and `FFN_o` of their concatenation (footnote 3). The last layer of `FFN_o` starts at 0, so that a new module
    returns 0.

    Args:
        embed_dim: size `d` of a word and of the vector.
        num_capsules: `K`.
        capsule_dim: `d_c`, by default `d / K`, and at least 1.
        iterations: routing iterations `r`. A number or a size below 1 raises a ValueError.
        pooling: "attentive", "mean" or "concat"; another one raises a ValueError.

    Parameters:
        vote_weight: `W_k` of Eq. 3, `[K, d, d_c]`.
        query: `FFN_q`, `d_c → d_c → d_c`; only for the attentive pooling.
        output: `FFN_o`, `d_c → d → d`, or `K·d_c → d → d` for concatenated capsules.
    """

    def __init__(
        self,
        embed_dim: int,
        num_capsules: int = 32,
        capsule_dim: Optional[int] = None,
        iterations: int = 3,
        pooling: str = "attentive",
    ):
        super().__init__()
        layers.check_positive(embed_dim=embed_dim, num_capsules=num_capsules, iterations=iterations)
        capsule_dim = max(1, embed_dim // num_capsules) if capsule_dim is None else capsule_dim
        layers.check_positive(capsule_dim=capsule_dim)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, not {pooling!r}")
        self.iterations = iterations
        self.pooling = pooling
        self.vote_weight = layers.xavier(num_capsules, embed_dim, capsule_dim)
        self.query = layers.feed_forward(capsule_dim, capsule_dim, capsule_dim) if pooling == "attentive" else None
        pooled_dim = num_capsules * capsule_dim if pooling == "concat" else capsule_dim
        self.output = layers.feed_forward(pooled_dim, embed_dim, embed_dim, zero=True)

    def reset_parameters(self) -> None:
        layers.xavier_(self.vote_weight)
        layers.zero_(self.output[2])

    def capsules(self, hidden: Tensor, padding_mask: Mask = None, iterations: Optional[int] = None) -> RoutingResult:
        """Route the words of `forward`, with `iterations` instead of all iterations.

        Returns:
            `RoutingResult(capsules [B, K, d_c], coupling [B, I, K])`.
        """
        routed = _route([self], hidden.unsqueeze(0), padding_mask, iterations)
        return RoutingResult(routed.capsules[0], routed.coupling[0])

    def weights(self, capsules: Tensor) -> Tensor:
        """Compute the weights `a` `[B, K]` of capsules `[B, K, d_c]`; a ValueError if the pooling is not attentive."""
        if self.query is None:
            raise ValueError(f"pooling {self.pooling} has no weights")
        return _weights([self], capsules.unsqueeze(0))[0]

    def forward(self, hidden: Tensor, padding_mask: Mask = None) -> Tensor:
        """Pool a sequence.

        Args:
            hidden: `H` `[B, I, d]`.
            padding_mask: `[B, I]`, True marks padding.

        Returns:
            The vector `[B, d]`.
        """
        return self.together([self], [hidden], padding_mask)[0]

    @staticmethod
    def together(poolings: Sequence[Any], states: Sequence[Tensor], padding_mask: Mask) -> Tensor:
        """Compute the vectors `[M, B, d]` of `M` layers from their states `[B, I, d]`.

        The poolings differ only in their parameters.
        """
        capsules = _route(poolings, layers.stacked(states), padding_mask).capsules
        if poolings[0].pooling == "concat":
            pooled = capsules.flatten(2)
        elif poolings[0].pooling == "mean":
            pooled = capsules.mean(2)
        else:
            pooled = (_weights(poolings, capsules).unsqueeze(2) @ capsules).squeeze(2)
        return layers.feed_forward_together([pooling.output for pooling in poolings], pooled)


def _route(poolings: Sequence[Any], hidden: Tensor, mask: Mask, iterations: Optional[int] = None) -> RoutingResult:
    """Compute the capsules `[M, B, K, d_c]` and couplings `[M, B, I, K]` of states `[M, B, I, d]`."""
    weight = layers.stacked([pooling.vote_weight for pooling in poolings])
    votes = layers.cast_votes(hidden.flatten(1, 2), weight).unflatten(1, hidden.shape[1:3])
    count = poolings[0].iterations if iterations is None else iterations
    return dynamic_routing(votes, count, padding_mask=mask, competition="input")


def _weights(poolings: Sequence[Any], capsules: Tensor) -> Tensor:
    """Compute `a` `[M, B, K]` from capsules `[M, B, K, d_c]`."""
    query = layers.feed_forward_together([pooling.query for pooling in poolings], capsules.mean(2))
    return (capsules @ query.unsqueeze(3)).squeeze(3).softmax(-1)


class MeanPooling(nn.Module):
    """`FFN_o(mean of the words)`: the pooling without capsules (Weng et al. 2020, Table 3)."""

    def __init__(self, embed_dim: int):
        super().__init__()
        self.output = layers.feed_forward(embed_dim, embed_dim, embed_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        layers.zero_(self.output[2])

    def forward(self, hidden: Tensor, padding_mask: Mask = None) -> Tensor:
        """As `CapsulePooling.forward`."""
        return self.together([self], [hidden], padding_mask)[0]

    @staticmethod
    def together(poolings: Sequence[Any], states: Sequence[Tensor], padding_mask: Mask) -> Tensor:
        """As `CapsulePooling.together`."""
        hidden = layers.stacked(states)
        if padding_mask is None:
            mean = hidden.mean(2)
        else:
            valid = (~padding_mask).to(hidden.dtype)
            total = (valid.unsqueeze(1) @ hidden).squeeze(2)
            mean = total / valid.sum(1, keepdim=True).clamp(min=1)
        return layers.feed_forward_together([pooling.output for pooling in poolings], mean)


class GlobalRepresentation(nn.Module):
    """The vector of a sentence, aggregated by a recurrent cell from layer to layer (Weng et al. 2020, Eq. 10).

    `s^m = GRU(pooling_m(H^m), s^{m-1})` with `s^0 = 0` and one cell for all layers. The sentence vector is `s^M`.
    The biases of the cell start at 0, so that vectors of 0 stay 0.

    Args:
        embed_dim: size of a layer's states and of the vector.
        poolings: a `CapsulePooling` or a `MeanPooling` for each layer, with equal options; without aggregation a single
            one, for the last layer.
        aggregate: whether there is a recurrent cell.
    """

    def __init__(self, embed_dim: int, poolings: Iterable[nn.Module], aggregate: bool = True):
        super().__init__()
        self.poolings = nn.ModuleList(poolings)
        self.aggregation = nn.GRUCell(embed_dim, embed_dim) if aggregate else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.aggregation is not None:
            nn.init.zeros_(self.aggregation.bias_ih)
            nn.init.zeros_(self.aggregation.bias_hh)

    def forward(self, states: Sequence[Tensor], padding_mask: Mask = None) -> Tensor:
        """Compute the vector of a sentence.

        Args:
            states: the output of every layer, from the first to the last, each `[B, I, d]`.
            padding_mask: `[B, I]`, True marks padding.

        Returns:
            `s^M` `[B, d]`. Another number of layers than of poolings raises a ValueError.
        """
        if self.aggregation is None:
            return self.poolings[-1](states[-1], padding_mask)
        if len(states) != len(self.poolings):
            raise ValueError(f"{len(self.poolings)} poolings need the output of as many layers, not of {len(states)}")
        if all(map(layers.has_no_hooks, self.poolings)):
            together: Any = self.poolings[0].together
            pooled = together(self.poolings, states, padding_mask)
        else:
            pooled = layers.stacked([pool(hidden, padding_mask) for pool, hidden in zip(self.poolings, states)])
        vector = torch.zeros_like(pooled[0])
        for layer in pooled:
            vector = self.aggregation(layer, vector)
        return vector


class ContextGate(nn.Module):
    """The gate `r̄_j = r_j + σ(W [r_j; s] + b) ∗ s` of each target word (Weng et al. 2020, Eq. 12-13).

    `embed_dim` is the size of a state and of the vector.
    """

    def __init__(self, embed_dim: int):
        super().__init__()
        self.projection = nn.Linear(2 * embed_dim, embed_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def gate(self, state: Tensor, vector: Tensor) -> Tensor:
        """Compute `g` `[B, T, d]` from states `[B, T, d]` and a vector `[B, d]`."""
        if not layers.is_bare(self.projection):
            pairs = torch.cat([state, vector.unsqueeze(1).expand(-1, state.size(1), -1)], dim=-1)
            return torch.sigmoid(self.projection(pairs))
        of_state, of_vector = self.projection.weight.chunk(2, dim=1)
        shift = nn.functional.linear(vector, of_vector, self.projection.bias)
        return torch.sigmoid(nn.functional.linear(state, of_state) + shift.unsqueeze(1))

    def forward(self, state: Tensor, vector: Tensor) -> Tensor:
        """Compute `r̄` `[B, T, d]`; arguments as in `gate`."""
        return torch.addcmul(state, self.gate(state, vector), vector.unsqueeze(1))


class PlainSum(nn.Module):
    """The sum `r̄_j = r_j + s`, in place of the gate (Weng et al. 2020, Table 3)."""

    def forward(self, state: Tensor, vector: Tensor) -> Tensor:
        """As `ContextGate.forward`."""
        return state + vector.unsqueeze(1)
