"""The papers' feed-forward network."""

from typing import Sequence, cast

import torch
from torch import Tensor, nn

from fairseq_capsule.modules.parameters import stacked


def feed_forward(input_dim: int, inner_dim: int, output_dim: int, zero: bool = False) -> nn.Sequential:
    """Build linear, ReLU, linear. With `zero` the last layer starts at 0, so that adding its output changes nothing."""
    last = nn.Linear(inner_dim, output_dim)
    if zero:
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(input_dim, inner_dim), nn.ReLU(), last)


def feed_forward_together(networks: Sequence[nn.Sequential], inputs: Tensor) -> Tensor:
    """Apply `M` networks of `feed_forward`, each to its own inputs `[M, B, C]`, with one product per linear layer."""
    first, last = ([cast(nn.Linear, network[index]) for network in networks] for index in (0, 2))
    return _linear_together(last, _linear_together(first, inputs).relu())


def _linear_together(layers: Sequence[nn.Linear], inputs: Tensor) -> Tensor:
    weight, bias = stacked([layer.weight for layer in layers]), stacked([layer.bias for layer in layers])
    return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))
