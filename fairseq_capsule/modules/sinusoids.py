"""Sinusoidal positions (Vaswani et al. 2017, §3.5) in fairseq's order: all sines, then all cosines."""

import math

import torch
from torch import Tensor


def sinusoids(positions: Tensor, size: int) -> Tensor:
    """Compute the vectors `[..., size]` of integer positions `[...]`, in float64."""
    half = size // 2
    step = math.log(10000) / max(1, half - 1)
    frequencies = torch.exp(torch.arange(half, dtype=torch.float64, device=positions.device) * -step)
    angles = positions.unsqueeze(-1) * frequencies
    vectors = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return torch.nn.functional.pad(vectors, (0, size - 2 * half))
