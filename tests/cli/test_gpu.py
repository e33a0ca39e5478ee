"""On a machine with a GPU the model and its batches are on it. Recorders replace the GPU."""

import importlib.util
from pathlib import Path

import pytest
import torch
from fairseq import utils

from fairseq_capsule_lab.cli import main

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def gradient_norms(monkeypatch, model, data):
    """Run experiments/gradient_norms.py."""
    spec = importlib.util.spec_from_file_location("gradient_norms", EXPERIMENTS / "gradient_norms.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr("sys.argv", ["gradient_norms.py", str(model), "--baseline", str(model), "--data", str(data)])
    script.main()


@pytest.mark.skipif(torch.version.cuda and not torch.cuda.is_available(), reason="torch for CUDA looks for a driver")
@pytest.mark.parametrize("program", ["nll", "probe", "gradient_norms"])
def test_the_model_is_on_the_device_of_the_batches(world, monkeypatch, program):
    moved = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.nn.Module, "cuda", lambda self: moved.append("model") or self)
    monkeypatch.setattr(utils, "move_to_cuda", lambda sample: moved.append("batch") or sample)
    if program == "gradient_norms":
        gradient_norms(monkeypatch, world / "model.pt", world / "data/bin")
    else:
        assert main([program, str(world / "model.pt"), "--data", str(world / "data/bin")]) == 0
    assert moved[0] == "model" and "batch" in moved
