"""Means over a batch that show whether a model's routing learns: shares, entropies, norms."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

Statistics = Dict[str, "Mean"]

DEAD = 0.01  # A squashed capsule of this norm is the sum of votes of norm 0.1.


class Mean(NamedTuple):
    """A mean over a batch, in two parts that can be added over batches and processes; both scalars in float32."""

    total: Tensor
    number: Tensor

    # A tuple's + would join the two.
    def __add__(self, other: "Mean") -> "Mean":  # type: ignore[override]
        return Mean(self.total + other.total, self.number + other.number)


def mean_where(values: Tensor, valid: Tensor) -> Mean:
    """The mean of `values` where `valid` is True; `valid` has their shape or is broadcast to it."""
    valid = valid.expand_as(values)
    return Mean(values.float().masked_fill(~valid, 0).sum(), valid.sum().float())


def coupling_entropy(coupling: Tensor, dim: int, padding: Optional[Tensor] = None) -> Mean:
    """The entropy of couplings by that of uniform ones: 1 where routing prefers nothing, 0 where it decides.

    Args:
        coupling: shares, 0 at padding; those along `dim` are one distribution, up to a factor.
        dim: the dimension of the outputs (or inputs) that share one input (or output).
        padding: of the shape of `coupling` or broadcast to it, True marks what takes no part.

    Returns:
        The mean over the distributions of at least two parts; a single part has no entropy.
    """
    valid = torch.ones_like(coupling, dtype=torch.bool) if padding is None else (~padding).expand_as(coupling)
    shares = coupling.float() / coupling.float().sum(dim, keepdim=True).clamp(min=1e-20)
    parts = valid.sum(dim)
    entropy = -torch.xlogy(shares, shares).sum(dim) / parts.clamp(min=2).float().log()
    return mean_where(entropy, parts > 1)


def capsule_norms(capsules: Tensor, padding: Optional[Tensor] = None) -> Tuple[Mean, Mean]:
    """The mean norm of capsules, and the share of dead ones, whose norm is below `DEAD`.

    Args:
        capsules: `[..., D]`.
        padding: `[...]` or broadcast to it, True marks capsules that take no part.
    """
    norms = capsules.float().norm(dim=-1)
    valid = torch.ones_like(norms, dtype=torch.bool) if padding is None else ~padding
    return mean_where(norms, valid), mean_where(norms < DEAD, valid)


def added_up(parts: List[Statistics]) -> Statistics:
    """Statistics of several layers as one: the sum of each name's parts."""
    found: Statistics = {}
    for part in parts:
        for name, mean in part.items():
            found[name] = found[name] + mean if name in found else mean
    return found
