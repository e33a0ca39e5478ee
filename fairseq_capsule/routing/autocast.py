"""Functions for torch's autocast on any device. Some devices, such as torch's meta device, do not support it."""

from contextlib import nullcontext
from typing import ContextManager, Optional

import torch


def autocast_dtype(device: str) -> Optional[torch.dtype]:
    """Return the dtype that autocast casts to on a type of device, or None if it is off."""
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return None


def without_autocast(device: str) -> ContextManager:
    """Return a context in which autocast is off. If it is already off, the context does nothing, which is faster."""
    return nullcontext() if autocast_dtype(device) is None else torch.autocast(device, enabled=False)
