"""Files that are not checkpoints are refused by name, and nothing in them runs."""

import os
import subprocess
import sys

import torch

from tests.integration.commands import last_line, run


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
