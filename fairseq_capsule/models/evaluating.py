"""Run a model to look at what it computes, without effects on its training."""

from contextlib import contextmanager
from typing import Iterator

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Run a block in eval mode without gradients, then restore each module's mode and the CPU's random numbers.

    fairseq draws random numbers of the CPU for layer dropout in eval mode too. Those of a GPU are not restored.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, training in modes:
            module.training = training
