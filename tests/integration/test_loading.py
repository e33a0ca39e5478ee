"""Files that are not checkpoints are refused by name, and nothing in them runs."""

import os
import subprocess
import sys

import pytest
import torch

from tests.checkpoints.ways_in import TASK
from tests.integration.commands import last_line, run, train


class Malicious:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def test_a_malicious_checkpoint_is_refused(data, trained, tmp_path):
    checkpoint, marker = tmp_path / "evil.pt", tmp_path / "it-ran"
    state = torch.load(trained / "checkpoint_last.pt")
    torch.save({**state, "extra": Malicious(marker)}, checkpoint)
    output = run("generate", data, "--path", checkpoint, "--cpu", succeeds=False)
    assert f"{checkpoint}: not loaded: it contains posix.system" in last_line(output)
    assert "nothing in it was run" in last_line(output)
    assert not marker.exists()


@pytest.mark.parametrize("task", [TASK, []], ids=["our task", "fairseq's task"])
def test_a_checkpoint_without_its_plugin_is_refused(data, trained, tmp_path, task):
    state = torch.load(trained / "checkpoint_last.pt")
    state["cfg"]["model"]["_name"] = "my_transformer"
    torch.save(state, tmp_path / "my.pt")
    line = last_line(run("generate", data, *task, "--path", tmp_path / "my.pt", "--cpu", succeeds=False))
    assert "UserError: the architecture 'my_transformer' is unknown; " in line
    assert "or give the --user-dir of the plugin that defines it" in line


def test_loading_a_model_prints_nothing(data, trained):
    """The configuration of fairseq and DEBUG logs of libraries are not printed; an inspection prints a summary."""
    program = f"""import logging
before = logging.getLogger().level, logging.getLogger().handlers[:]
from fairseq_capsule.hub import load
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
load('{trained}/checkpoint_last.pt', '{data}')
hub = CapsuleTransformerModel.from_pretrained('{trained}', 'checkpoint_last.pt', '{data}')
import matplotlib.pyplot
assert (logging.getLogger().level, logging.getLogger().handlers) == before
print(hub.inspect("a b")[0])"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, *others = done.stdout.splitlines()
    assert first.startswith("sentence 1: ") and len(others) == 4


def test_a_checkpoint_of_plain_fairseq_loads(data, tmp_path):
    train(data, tmp_path, "--max-update", 1, arch="transformer_tiny", user_dir=None)
    output = run("generate", data, "--path", tmp_path / "checkpoint_last.pt", "--cpu", "--max-len-b", 5)
    assert "Generate test" in output
