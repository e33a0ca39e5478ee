"""torch's autocast, on any device; some, such as torch's meta device, have none."""

from contextlib import nullcontext
from typing import ContextManager, Optional

import torch


def autocast_dtype(device: str) -> Optional[torch.dtype]:
    """What autocast casts to on a type of device; None where it is off."""
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return None


def without_autocast(device: str) -> ContextManager:
    """A context in which autocast is off; nothing where it is off already, since to turn it off takes time too."""
    return nullcontext() if autocast_dtype(device) is None else torch.autocast(device, enabled=False)
