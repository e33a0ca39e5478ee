"""Means over a batch that show whether a routing learns: shares, entropies and norms."""

from typing import Dict, Iterable, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

Statistics = Dict[str, "Mean"]

DEAD = 0.01  # Before the squash, the weighted sum of votes has norm 0.1.


class Mean(NamedTuple):
    """A mean over a batch, stored as a sum and a number of values, so that batches and processes can be added."""

    total: Tensor
    number: Tensor

    # The + of tuples would concatenate.
    def __add__(self, other: "Mean") -> "Mean":  # type: ignore[override]
        return Mean(self.total + other.total, self.number + other.number)


def mean_where(values: Tensor, valid: Tensor) -> Mean:
    """Return the mean of `values` where `valid` is True. `valid` has the same shape or is broadcast to it."""
    valid = valid.expand_as(values)
    return Mean(values.float().masked_fill(~valid, 0).sum(), valid.sum().float())


def coupling_entropy(coupling: Tensor, dim: int, padding: Optional[Tensor] = None) -> Mean:
    """Return the entropy of couplings divided by the entropy of uniform couplings.

    It is 1 if the routing has no preference, and 0 if it decides completely. It is a mean over distributions with at
    least two valid elements.

    Args:
        coupling: couplings, 0 at padding. Along `dim` they are one distribution, up to a factor.
        dim: the dimension of the competing outputs (or inputs).
        padding: the shape of `coupling` or broadcast to it; True marks excluded elements.
    """
    valid = torch.ones_like(coupling, dtype=torch.bool) if padding is None else (~padding).expand_as(coupling)
    shares = coupling.float() / coupling.float().sum(dim, keepdim=True).clamp(min=1e-20)
    parts = valid.sum(dim)
    entropy = -torch.xlogy(shares, shares).sum(dim) / parts.clamp(min=2).float().log()
    return mean_where(entropy, parts > 1)


def capsule_norms(capsules: Tensor, padding: Optional[Tensor] = None) -> Tuple[Mean, Mean]:
    """Return the mean norm of capsules `[..., D]`, and the share of dead capsules (norm below `DEAD`).

    `padding`, `[...]` or broadcast to it, is True at excluded capsules.
    """
    norms = capsules.float().norm(dim=-1)
    valid = torch.ones_like(norms, dtype=torch.bool) if padding is None else ~padding
    return mean_where(norms, valid), mean_where(norms < DEAD, valid)


def added_up(parts: Iterable[Statistics]) -> Statistics:
    """Add the statistics of several layers, separately for each name."""
    sums: Statistics = {}
    for part in parts:
        for name, mean in part.items():
            sums[name] = sums[name] + mean if name in sums else mean
    return sums
