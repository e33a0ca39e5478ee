"""What every test shares: the same numbers everywhere, since a suite that fails now and then tells of luck alone."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def seed():
    """Whatever ran before in this process."""
    torch.manual_seed(1)
