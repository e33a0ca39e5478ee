"""Hostile files: calls in pickles, damaged archives, invalid tensors."""

import argparse
import io
import os
import pickle
import struct
import subprocess
import tarfile
import zipfile
from argparse import Namespace
from pathlib import Path

import torch
from fairseq import utils
from omegaconf import OmegaConf

from tests.checkpoints.marker import CALL, MARKER

NO_ARCHIVE = {"_use_new_zipfile_serialization": False}


class Made:
    """Pickled as a call with arguments and perhaps a state, which becomes the attributes of what the call returns."""

    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


def calling(function, *arguments):
    """An object that is pickled as a call."""
    return Made(function, arguments)


def saved(state, **options):
    content = io.BytesIO()
    torch.save(state, content, **options)
    return content.getvalue()


def pickled(code):
    """Return an archive with this pickle."""

    def rewrite(state):
        content = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(saved(state))) as old, zipfile.ZipFile(content, "w") as new:
            for name in old.namelist():
                new.writestr(name, code if name.endswith("data.pkl") else old.read(name))
        return content.getvalue()

    return rewrite


def repacked(change=lambda name, record: record, compression=zipfile.ZIP_STORED):
    def repack(state):
        content = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(saved(state))) as old, zipfile.ZipFile(content, "w", compression) as new:
            for name in old.namelist():
                new.writestr(name, change(name, old.read(name)))
        return content.getvalue()

    return repack


def damaged(state):
    """Return a checkpoint with one flipped bit in a parameter."""
    content = bytearray(saved(state))
    name = next(name for name in zipfile.ZipFile(io.BytesIO(content)).namelist() if "/data/" in name)
    record = zipfile.ZipFile(io.BytesIO(content)).getinfo(name)
    content[record.header_offset + 30 + sum(struct.unpack_from("<HH", content, record.header_offset + 26))] ^= 1
    return bytes(content)


def torchscript(state):
    module, content = torch.jit.script(torch.nn.Linear(1, 1)), io.BytesIO()
    torch.jit.save(module, content)
    return content.getvalue()


def old_tar(state):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("storages", "tensors", "pickle"):
            record = pickle.dumps(calling(os.system, f"touch {MARKER}"))
            header = tarfile.TarInfo(name)
            header.size = len(record)
            archive.addfile(header, io.BytesIO(record))
    return content.getvalue()


def system(opcodes):
    return opcodes.replace(b"COMMAND", f"touch {MARKER}".encode())


CALLS = {
    "os.system": (os.system, f"touch {MARKER}"),
    "subprocess.Popen": (subprocess.Popen, ["touch", str(MARKER)]),
    "eval": (eval, CALL),
    "exec": (exec, CALL),
    "open": (open, str(MARKER), "w"),
    "__import__": (__import__, "antigravity"),
    "Path.touch": (Path.touch, MARKER),
    "torch.load": (torch.load, str(MARKER)),
    "torch.hub": (torch.hub.load, "somebody/something", "model"),
    "safe globals": (torch.serialization.add_safe_globals, [os.system]),
    "fairseq's eval": (utils.eval_str_list, CALL),
    "fairseq's import": (utils.import_user_module, Namespace(user_dir="/tmp")),
    "omegaconf": (OmegaConf.create, "${oc.env:HOME}"),
    "parser": (argparse.ArgumentParser, "x"),
}

OPCODES = {
    "GLOBAL REDUCE": system(b"cos\nsystem\n(S'COMMAND'\ntR."),
    "INST": system(b"(S'COMMAND'\nios\nsystem\n."),
    "OBJ": system(b"(cos\nsystem\nS'COMMAND'\no."),
    "STACK_GLOBAL": system(b"\x80\x04\x8c\x02os\x8c\x06system\x93(S'COMMAND'\ntR."),
    "dotted name": system(b"\x80\x04\x8c\x08argparse\x8c\x12_sys.modules.system\x93."),
    "names that join": system(b"ctorch._utils\n_rebuild_tensor.__globals__\n."),
    "NEWOBJ": b"\x80\x02csubprocess\nPopen\n(S'x'\nt\x81.",
    "BUILD on a class": b"\x80\x02cargparse\nNamespace\n}S'__getattr__'\ncargparse\nNamespace\nsb.",
    "BUILD with slots": b"\x80\x02cargparse\nNamespace\n)R}}S'__class__'\ncargparse\nNamespace\ns\x86b.",
    "persistent id": b"\x80\x02(S'storage'\ncos\nsystem\nS'0'\nS'cpu'\nK\x04tQ.",
    "extension": b"\x80\x02\x82\x01.",
    "no end": b"\x80\x02}",
    "empty": b"",
    "deep": b"\x80\x02" + b"(" * 100_000 + b".",
    "memory": b"\x80\x02cbuiltins\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x10\x85R.",
}

TENSORS = {
    "stride 0": torch.ones(1).expand(2**40),
    "meta": torch.ones(3, device="meta"),
    "sparse": torch.ones(3).to_sparse(),
    "class": torch.nn.Parameter,
    "function": torch._utils._rebuild_tensor,
}
