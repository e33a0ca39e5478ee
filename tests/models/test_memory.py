"""If a command trains or translates on a CPU, glibc keeps the memory of large tensors, unless the user has settings.

Nothing else changes this setting of glibc.
"""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
import sys
import torch
from omegaconf import OmegaConf
from tests.zoo import build

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()] + [
        (f"other{n}", ctypes.c_size_t) for n in range(5)
    ]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Mallinfo

def is_mapped():
    before = mallinfo().hblks
    large = torch.empty(2**26)
    return mallinfo().hblks > before

model = build("capsnmt_tiny")
def prepare(path):
    model.prepare_for_inference_(OmegaConf.create({"generation": {"beam": 5}, "common_eval": {"path": path}}))

prepare(None)
print(is_mapped())
if sys.argv[1] == "trains":
    model.set_num_updates(1)
else:
    prepare("model.pt")
print(is_mapped())
"""
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
def test_large_tensors_are_mapped_again_unless_memory_is_kept(command, settings, mapped):
    """Before the command, and in a hub, they are always mapped. In the command only a user's settings map them."""
    others = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_") and k != "GLIBC_TUNABLES"}
    run = [sys.executable, "-W", "ignore", "-c", PROGRAM, command]
    said = subprocess.run(run, env={**others, **settings}, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", str(mapped)]
