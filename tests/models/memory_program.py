"""The program of `test_memory.py`: whether a large tensor is mapped before and after a command prepares its work."""

import ctypes
import sys

import torch
from omegaconf import OmegaConf

from tests.zoo import build


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()] + [
        (f"other{n}", ctypes.c_size_t) for n in range(5)
    ]


def is_mapped():
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    before = mallinfo().hblks
    large = torch.empty(2**26)
    mapped = mallinfo().hblks > before
    del large
    return mapped


def main():
    model = build("capsnmt_tiny")

    def prepare(path):
        settings = {"generation": {"beam": 5}, "common_eval": {"path": path}}
        model.prepare_for_inference_(OmegaConf.create(settings))

    prepare(None)
    model.set_num_updates(1)  # fairseq calls it when it loads a checkpoint
    print(is_mapped())
    if sys.argv[1] == "trains":
        build("capsnmt_tiny").train()
    else:
        prepare("model.pt")
    print(is_mapped())


if __name__ == "__main__":
    main()
