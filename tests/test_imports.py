"""What an import does, in a process of its own: it registers and patches nothing unless it has to."""

import subprocess
import sys

import pytest


def run(code):
    command = [sys.executable, "-W", "ignore", "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


PURE = ["routing", "routing.naive", "losses", "modules", "huggingface"]


def test_the_pure_parts_import_torch_alone():  # and transformers
    """Each is imported in a fork of a process that has imported torch, which takes seconds."""
    code = f"""
import importlib, os, sys, torch
for name in {PURE}:
    if os.fork() == 0:
        importlib.import_module("fairseq_capsule." + name)
        print(name, *{{"fairseq", "hydra", "omegaconf"}} & set(sys.modules))
        sys.exit()
    assert os.wait()[1] == 0
"""
    assert run(code) == PURE


@pytest.mark.parametrize(
    "name",
    [
        *("fairseq_capsule", "fairseq_capsule_lab", "fairseq_capsule_lab.cli", "fairseq_capsule_lab.runs"),
        "fairseq_capsule_lab.cli.table",
    ],
)
def test_the_packages_import_no_torch(name):
    assert run(f"import {name}, sys; print(*{{'torch', 'fairseq'}} & set(sys.modules))") == []


def test_the_pure_parts_patch_nothing():
    code = """
import fairseq.checkpoint_utils as utils, fairseq.models, sys
before = utils.load_checkpoint_to_cpu, utils.torch, len(fairseq.models.MODEL_REGISTRY)
import capsule_routing.functions, capsule_routing.losses, capsule_routing.modules
evals = [name for name, module in sys.modules.items() if name.startswith("fairseq.") and "eval" in vars(module)]
print(before == (utils.load_checkpoint_to_cpu, utils.torch, len(fairseq.models.MODEL_REGISTRY)), *evals)
"""
    assert run(code) == ["True"]


def test_fairseq_registers_everything_for_the_user_directory():
    code = """
import sys
from argparse import Namespace
from pathlib import Path
from importlib.util import find_spec
from fairseq import criterions, models, tasks, utils
folder = Path(find_spec("fairseq_capsule").origin).parent  # imports nothing
assert "fairseq_capsule" not in sys.modules
utils.import_user_module(Namespace(user_dir=str(folder)))
print("gdr_lstm" in models.MODEL_REGISTRY, "capsule_translation" in tasks.TASK_REGISTRY)
print("bag_of_words_probe" in criterions.CRITERION_REGISTRY)
"""
    assert run(code) == ["True", "True", "True"]
