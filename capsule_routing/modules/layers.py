"""What several mechanisms are made of: parameters, feed-forward networks, votes and sinusoidal positions."""

import math
from typing import Sequence, cast

import torch
from torch import Tensor, nn


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """`torch.stack`, without a copy if there is only one tensor."""
    return torch.stack(tuple(tensors)) if len(tensors) > 1 else tensors[0].unsqueeze(0)


def parameter(*shape: int) -> nn.Parameter:
    """Create a parameter that `reset_parameters` fills."""
    return nn.Parameter(torch.empty(shape))


@torch.no_grad()
def xavier_(weight: nn.Parameter) -> nn.Parameter:
    """Fill a parameter Xavier-uniformly in its last two dimensions."""
    bound = math.sqrt(6 / (weight.size(-2) + weight.size(-1)))
    return weight.uniform_(-bound, bound)  # type: ignore[return-value]


@torch.no_grad()
def normal_(vector: nn.Parameter) -> None:
    """Fill a vector `[n]` with normal numbers of variance `1/n`."""
    vector.normal_().div_(math.sqrt(vector.numel()))


def check_positive(**numbers: int) -> None:
    """Raise a ValueError that names the first number below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


def xavier(*shape: int) -> nn.Parameter:
    """Create a parameter, Xavier-uniform in its last two dimensions."""
    return xavier_(parameter(*shape))


def feed_forward(input_dim: int, inner_dim: int, output_dim: int, zero: bool = False) -> nn.Sequential:
    """Build linear, ReLU, linear. With `zero` the last layer starts at 0, so that adding its output changes nothing."""
    last = nn.Linear(inner_dim, output_dim)
    if zero:
        zero_(last)
    return nn.Sequential(nn.Linear(input_dim, inner_dim), nn.ReLU(), last)


def zero_(linear: nn.Module) -> None:
    """Set a linear layer to 0."""
    for weight in linear.parameters():
        nn.init.zeros_(weight)


def is_bare(linear: nn.Module) -> bool:
    """Return whether the weight of a linear layer stands for the layer: it has no hooks, adapters or quantisation."""
    return type(linear) is nn.Linear and type(linear.weight) is nn.Parameter and has_no_hooks(linear)


def has_no_hooks(module: nn.Module) -> bool:
    """Return whether a call of a module is a call of its class's `forward`. Offloading replaces it, for instance."""
    return not (module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__)


def feed_forward_together(networks: Sequence[nn.Sequential], inputs: Tensor) -> Tensor:
    """Apply `M` networks of `feed_forward`, each to its own inputs `[M, B, C]`, with one product per linear layer."""
    first, last = ([cast(nn.Linear, network[index]) for network in networks] for index in (0, 2))
    return _linear_together(last, _linear_together(first, inputs).relu())


def _linear_together(layers: Sequence[nn.Linear], inputs: Tensor) -> Tensor:
    if not all(map(is_bare, layers)):
        return stacked([layer(rows) for layer, rows in zip(layers, inputs)])
    weight, bias = stacked([layer.weight for layer in layers]), stacked([layer.bias for layer in layers])
    return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))


def cast_votes(inputs: Tensor, weight: Tensor) -> Tensor:
    """Compute the votes `[..., L, N, D]` of `inputs` `[..., L, C]` with `weight` `[..., N, C, D]`."""
    outputs, _, size = weight.shape[-3:]
    return (inputs @ weight.transpose(-3, -2).flatten(-2)).unflatten(-1, (outputs, size))


def sinusoids(positions: Tensor, size: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Compute fairseq's vectors `[..., size]` of integer positions `[...]`; in float32 they equal fairseq's."""
    half = size // 2
    step = math.log(10000) / max(1, half - 1)
    frequencies = torch.exp(torch.arange(half, dtype=dtype, device=positions.device) * -step)
    angles = positions.unsqueeze(-1) * frequencies
    vectors = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return torch.nn.functional.pad(vectors, (0, size - 2 * half))
