"""What is no checkpoint is refused by name, and nothing in it runs."""

import os
import subprocess
import sys

import pytest
import torch
from fairseq import checkpoint_utils

import fairseq_capsule
from fairseq_capsule import loading
from fairseq_capsule.errors import UserError
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
    assert f"{checkpoint}: not loaded: it asks for posix.system" in last_line(output)
    assert "nothing in it was run" in last_line(output)
    assert not marker.exists()


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 cut off"])
def test_a_damaged_checkpoint_is_named(tmp_path, content):
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.write_bytes(content)
    with pytest.raises(UserError) as error:
        checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
    assert str(error.value).startswith(f"{checkpoint}: not loaded: ")
    assert "\n" not in str(error.value)


def test_half_a_checkpoint_is_named(trained, tmp_path):
    checkpoint = tmp_path / "checkpoint.pt"
    whole = (trained / "checkpoint_last.pt").read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="damaged"):
        checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))


def test_installing_twice_patches_once():
    before = checkpoint_utils.load_checkpoint_to_cpu
    loading.install()
    assert checkpoint_utils.load_checkpoint_to_cpu is before
    assert fairseq_capsule.models


def test_importing_prints_nothing():
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import fairseq_capsule, importlib; importlib.reload(fairseq_capsule)"],
        capture_output=True,
        text=True,
    )
    assert (finished.returncode, finished.stdout) == (0, ""), finished.stderr
    assert finished.stderr == ""
