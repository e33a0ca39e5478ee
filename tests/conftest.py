"""Shared fixtures. The seed is fixed, so that the tests are deterministic."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def seed():
    """Set the seed before each test."""
    torch.manual_seed(1)
