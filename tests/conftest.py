"""Shared fixtures. The seed is fixed, so that the tests are deterministic."""

import pytest
import torch
from hydra.core.config_store import ConfigStore
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# Hydra copies the store of all configurations of fairseq for each composition, which takes longer than the composition.
# Nothing writes to the copy: the store itself returns a copy of each configuration that it is asked for.
ConfigStore.__deepcopy__ = lambda store, memo: store


@pytest.fixture(autouse=True)
def seed():
    """Set the seed before each test."""
    torch.manual_seed(1)
