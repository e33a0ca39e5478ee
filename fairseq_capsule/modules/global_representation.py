"""One vector for the whole source sentence, and the gate that adds it to the target states (Weng et al. 2020)."""

from typing import Iterable, List, Optional, Sequence, cast

import torch
from torch import Tensor, nn

from fairseq_capsule.modules.capsule_pooling import CapsulePooling


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
        if self.aggregation is not None:
            nn.init.zeros_(self.aggregation.bias_ih)
            nn.init.zeros_(self.aggregation.bias_hh)

    def forward(self, states: List[Tensor], padding_mask: Optional[Tensor] = None) -> Tensor:
        """Compute the vector of a sentence.

        Args:
            states: the output of every layer, from the first to the last, each `[B, I, d]`.
            padding_mask: `[B, I]`, True marks padding.

        Returns:
            `s^M` `[B, d]`.

        Raises:
            ValueError: the numbers of layers and poolings differ.
        """
        if self.aggregation is None:
            return self.poolings[-1](states[-1], padding_mask)
        if len(states) != len(self.poolings):
            raise ValueError(f"{len(self.poolings)} poolings need the output of as many layers, not of {len(states)}")
        first = cast(CapsulePooling, self.poolings[0])
        pooled = first.together(cast(Sequence[CapsulePooling], self.poolings), states, padding_mask)
        vector = torch.zeros_like(pooled[0])
        for layer in pooled:
            vector = self.aggregation(layer, vector)
        return vector


class ContextGate(nn.Module):
    """The gate `r̄_j = r_j + σ(W [r_j; s] + b) ∗ s` of each target word (Weng et al. 2020, Eq. 12-13).

    Args:
        embed_dim: size of a state and of the vector.
    """

    def __init__(self, embed_dim: int):
        super().__init__()
        self.projection = nn.Linear(2 * embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def gate(self, state: Tensor, vector: Tensor) -> Tensor:
        """Compute `g` `[B, T, d]` from states `[B, T, d]` and a vector `[B, d]`."""
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
