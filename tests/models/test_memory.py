"""If a command trains or translates on a CPU, glibc keeps the memory of large tensors, unless the user has settings.

Nothing else changes this setting of glibc.
"""

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_capsule.models import capsule_model
from tests.checkpoints.ways_in import Place
from tests.processes import run_forked

REPOSITORY = Path(__file__).parents[2]
glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33"
)


@glibc
@pytest.mark.parametrize(
    "command, settings, mapped",
    [
        ("trains", {}, False),
        ("translates", {}, False),
        ("trains", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, False),
        ("trains", {"MALLOC_TRIM_THRESHOLD_": "131072"}, True),
        ("translates", {"GLIBC_TUNABLES": "glibc.malloc.top_pad=131072"}, True),
    ],
    ids=str,
)
def test_large_tensors_are_mapped_again_unless_memory_is_kept(monkeypatch, command, settings, mapped):
    """Before the command, and in a hub, they are always mapped. In the command only a user's settings map them."""
    for name in list(os.environ):
        if name.startswith("MALLOC_") or name == "GLIBC_TUNABLES":
            monkeypatch.delenv(name)
    if "hugetlb" in str(settings):  # glibc reads it when a process starts
        run = [sys.executable, "-W", "ignore", "-m", "tests.models.memory_program", command]
        environment = {**os.environ, **settings, "PYTHONPATH": str(REPOSITORY)}
        said = subprocess.run(run, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    else:
        said = run_forked("tests.models.memory_program", "main", [command], REPOSITORY, settings).stdout
    assert said.split() == ["True", str(mapped)]


def test_training_keeps_memory_and_loading_a_trained_model_does_not(monkeypatch, tmp_path):
    """fairseq also calls `set_num_updates` when it loads a checkpoint."""
    calls = []
    monkeypatch.setattr(capsule_model, "keep_memory", lambda: calls.append("kept"))
    place = Place(tmp_path)  # trains one update
    assert calls
    assert place.state()["optimizer_history"][-1]["num_updates"] == 1
    calls.clear()
    place.from_pretrained(place.good)
    place.hub_load(place.good)
    place.inspect(place.good)
    assert not calls
