"""The papers' feed-forward network."""

from torch import nn


def feed_forward(input_dim: int, inner_dim: int, output_dim: int, zero: bool = False) -> nn.Sequential:
    """Linear, ReLU, linear; with `zero` the last of them starts at 0, so that what it is added to starts unchanged."""
    last = nn.Linear(inner_dim, output_dim)
    if zero:
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(input_dim, inner_dim), nn.ReLU(), last)
