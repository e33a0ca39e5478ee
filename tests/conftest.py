"""Shared fixtures. The seed is fixed, so that the tests are deterministic."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import settings

import fairseq_capsule.tasks  # noqa: F401  registers everything
from fairseq_capsule_lab.runs import plugins
from tests import hydra_store  # noqa: F401  faster compositions
from tests.processes import run_code

settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def seed():
    """Set the seed before each test."""
    torch.default_generator.manual_seed(1)  # `torch.manual_seed` also prepares devices, which takes longer


@pytest.fixture
def forked_plugins(monkeypatch):
    """Import the user directory of a training in a fork of a process that has imported fairseq, which takes seconds."""

    def run(words, **_):
        assert words[:3] == [sys.executable, "-P", "-c"]
        return run_code(words[3], words[4:])

    monkeypatch.setattr(plugins, "subprocess", SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL))
