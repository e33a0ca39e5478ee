"""Shared fixtures. The seed is fixed, so that the tests are deterministic."""

import signal

import pytest
import torch
from hypothesis import settings

import fairseq_capsule.tasks  # noqa: F401  registers everything
from tests import hydra_store  # noqa: F401  faster compositions

# A process that a shell starts in the background ignores SIGINT, and so would the commands in the tests of Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile("ci")  # of Hypothesis: no limit of time, always the same examples


@pytest.fixture(autouse=True)
def seed():
    """Set the seed before each test."""
    torch.default_generator.manual_seed(1)  # `torch.manual_seed` also prepares devices, which takes longer
