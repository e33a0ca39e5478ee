"""Hostile checkpoints, by kind. Each is a function of a real checkpoint's state that gives another state or bytes.

`MARKER` is a file that must never appear: whatever runs makes it.
"""

import argparse
import io
import os
import pickle
import struct
import subprocess
import tarfile
import tempfile
import zipfile
from argparse import Namespace
from collections import OrderedDict, UserDict, defaultdict
from enum import Enum
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from fairseq import utils
from omegaconf import OmegaConf

MARKER = Path(tempfile.gettempdir()) / f"a-checkpoint-ran-{os.getpid()}"
CALL = f"__import__('os').system('touch {MARKER}')"
OPEN = f"open('{MARKER}', 'w')"


NO_ARCHIVE = {"_use_new_zipfile_serialization": False}


class Calling:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Colour(Enum):
    RED = CALL


class Words(str):
    def __len__(self):
        return os.system(f"touch {MARKER}")


class Options(Namespace):
    def __getattr__(self, name):
        return os.system(f"touch {MARKER}")


def saved(state, **options):
    content = io.BytesIO()
    torch.save(state, content, **options)
    return content.getvalue()


def flat(state, **options):
    """The older form: one Namespace of all options."""
    sections = [section for section in state.pop("cfg").values() if isinstance(section, dict)]
    values = {name: value for section in sections for name, value in section.items() if name != "_name"}
    names = {"arch": "capsule_transformer_tiny", "task": "translation", "criterion": "cross_entropy"}
    return {**state, "args": Namespace(**{**values, **names, **options})}


def option(name, value, section="model"):
    """An option of the model's, or of another section, in both forms of a checkpoint."""

    def nested(state):
        part = state["cfg"].get(section)
        state["cfg"][section] = {**(part if isinstance(part, dict) else {}), name: value}
        return state

    return {f"{name}, cfg": nested, f"{name}, args": lambda state: flat(state, **{name: value})}


def entry(*path, value):
    """Something else in the state."""

    def place(state):
        owner = state
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = value
        return state

    return place


def pickled(code):
    """Whatever the pickle of an archive says."""

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
    """A bit of a parameter is another one."""
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
            record = pickle.dumps(Calling(os.system, f"touch {MARKER}"))
            header = tarfile.TarInfo(name)
            header.size = len(record)
            archive.addfile(header, io.BytesIO(record))
    return content.getvalue()


def a_list_of_itself():
    items = []
    items.append(items)
    return items


def laughs():
    """2^30 empty lists in 30."""
    items = []
    for _ in range(30):
        items = [items, items]
    return items


def deep(levels):
    items = "x"
    for _ in range(levels):
        items = [items]
    return items


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

EXPRESSIONS = {
    "call": CALL,
    "call in a list": f"[{CALL}]",
    "blanks": f"  \t{OPEN} ",
    "comprehension target": "[0 for utils.__dict__['x'] in [1]]",
    "attribute target": "[0 for torch.nn.x in [1]]",
    "subscript": "dict[str]",
    "class subscript": "(lambda: 0).__globals__['utils']",
    "f-string": f"f'{{{OPEN}}}'",
    "f-string without quotes inside": "f'{open}'",
    "walrus": "(x := open)",
    "lambda": f"(lambda: {OPEN})()",
    "operator": "[1] @ [2]",
    "starred": "[*open]",
    "conditional": f"1 if {OPEN} else 0",
    "comparison": f"1 < {OPEN}",
    "bytes literal": "b'x'",
    "set": "{open}",
    "dict of calls": f"{{'a': {OPEN}}}",
    "double": repr(CALL),
    "thrice": repr(repr(OPEN)),
    "hidden in JSON": '{"beam": "' + OPEN + '"}',
    "escapes": r"'\x5f\x5fimport\x5f\x5f(0)'",
    "power": "9**9**9**9",
    "shift": "1<<99999999999",
    "long list": "[0]*99999999999",
    "long lists": "[[0]*9999]*9999 + [0]*9999",
    "parentheses": "(" * 50_000,
    "minus": "[" + "-" * 50_000 + "1]",
    "long": "[" + "1," * 100_000 + "]",
    "line": "1\n+open('x')",
    "await": "(await x)",
    "generator": "(x for x in open)",
    "ellipsis": "[...]",
    "attribute": "().__class__",
    "complex": "[1j]",
}

VALUES = {
    "bytes": OPEN.encode(),
    "bytearray": bytearray(OPEN.encode()),
    "set": {OPEN},
    "complex": 1j,
    "function": torch._utils._rebuild_tensor,
    "class": torch.nn.Parameter,
    "Namespace's class": Namespace,
    "tensor": torch.ones(1),
    "dtype": torch.float32,
    "size": torch.Size([1]),
    "ordered": OrderedDict(a=OPEN),
    "numpy number": np.float64(1),
    "numpy text": np.str_(OPEN),
    "numpy objects": np.array([Calling(os.system, f"touch {MARKER}")], dtype=object),
    "enum": Colour.RED,
    "text of a class": Words("x"),
    "Namespace of a class": Options(),
    "fraction": Fraction(1, 2),
    "defaultdict": defaultdict(eval),
    "UserDict": UserDict(),
    "OmegaConf": OmegaConf.create({"a": "${oc.env:HOME}"}),
    "OmegaConf list": OmegaConf.create(["${oc.env:HOME}"]),
    "itself": a_list_of_itself(),
    "laughs": laughs(),
    "deep": deep(200),
    "in a list": [[OPEN]],
    "in a tuple": (1, (OPEN,)),
    "in a dict": {"a": {"b": OPEN}},
    "in a Namespace": Namespace(a=Namespace(b=OPEN)),
    "key": {OPEN: 1},
    "bytes key": {b"a": 1},
    "line in a key": {"a\nb": 1},
}

INTERPOLATIONS = {
    "env": "${oc.env:SECRET}",
    "in a text": "x${oc.env:SECRET}y",
    "escaped": r"\${oc.env:SECRET}",
    "create": "${oc.create:{a: 1}}",
    "decode": "${oc.decode:'[1]'}",
    "node": "${common.seed}",
    "nested": "${oc.env:${common.log_format}}",
    "in a literal": "'\\x24{oc.env:SECRET}'",
    "in a list": ["${oc.env:SECRET}"],
    "as a key": {"${oc.env:SECRET}": 1},
}

ADDRESSES = {
    "codes": ("bpe", {"_name": "subword_nmt", "bpe_codes": "http://localhost:9/codes"}),
    "encoder": ("bpe", {"_name": "gpt2", "gpt2_encoder_json": "https://localhost:9/encoder.json"}),
    "sentencepiece": ("bpe", {"_name": "sentencepiece", "sentencepiece_model": "s3://bucket/model"}),
    "blanks": ("bpe", {"_name": "fastbpe", "bpe_codes": "ht\ntp:\n//localhost:9/codes"}),
    "tokeniser": ("tokenizer", {"_name": "moses", "source_lang": "http://localhost:9"}),
    "JSON": ("task", {"eval_bleu_detok_args": '{"bpe_codes": "http://localhost:9/codes"}'}),
    "model": ("model", {"encoder_embed_path": "http://localhost:9/embeddings"}),
}

NAMES = {
    "bpe": ("bpe", "../../../../../../../../tmp/evil"),
    "tokenizer": ("tokenizer", "moses,space"),
    "scoring": ("scoring", "/tmp/evil"),
    "arch": ("arch", "transformer model.dropout=1"),
    "criterion": ("criterion", "x@y"),
}

TENSORS = {
    "stride 0": torch.ones(1).expand(2**40),
    "meta": torch.ones(3, device="meta"),
    "sparse": torch.ones(3).to_sparse(),
    "class": torch.nn.Parameter,
    "function": torch._utils._rebuild_tensor,
}

HOSTILE = {
    **{f"a call of {name}": entry("extra", value=Calling(*call)) for name, call in CALLS.items()},
    **{f"opcodes: {name}": pickled(code) for name, code in OPCODES.items()},
    **{
        f"opcodes, no archive: {name}": lambda state, code=code: code
        for name, code in OPCODES.items()
        if name in ("GLOBAL REDUCE", "INST", "STACK_GLOBAL")
    },
    "no archive": lambda state: saved({**state, "x": Calling(os.system, f"touch {MARKER}")}, **NO_ARCHIVE),
    **{
        f"expression: {kind}: {form}": place
        for kind, text in EXPRESSIONS.items()
        for form, place in option("adaptive_softmax_cutoff", text).items()
    },
    **{
        f"expression in {name}: {form}": place
        for name in ("decoder_attention", "encoder_xformers_att_config", "encoder_layers", "pipeline_balance")
        for form, place in option(name, CALL).items()
    },
    **{
        f"value: {kind}: {form}": place
        for kind, value in VALUES.items()
        for form, place in option("decoder_attention", value).items()
    },
    **{
        f"interpolation: {kind}: {form}": place
        for kind, text in INTERPOLATIONS.items()
        for name in ("dropout", "encoder_embed_path")
        for form, place in option(name, text).items()
        if name == "dropout" or kind != "in a literal"  # a file may be called so
    },
    **{
        f"address: {kind}: {form}": place
        for kind, (section, values) in ADDRESSES.items()
        for name, value in values.items()
        if name != "_name"
        for form, place in option(name, value, section).items()
    },
    **{f"name: {kind}": lambda state, pair=pair: flat(state, **dict([pair])) for kind, pair in NAMES.items()},
    "name: model": option("_name", "../transformer")["_name, cfg"],
    **{f"writes: {form}": place for form, place in option("save_predictions", str(MARKER), "criterion").items()},
    **{f"tensor: {kind}": entry("model", "w", value=value) for kind, value in TENSORS.items()},
    "tensor: in the optimiser": entry("last_optimizer_state", value={"x": TENSORS["stride 0"]}),
    "tensor: more than its record": repacked(lambda name, record: record[:4] if "/data/" in name else record),
    "archive: compressed": repacked(compression=zipfile.ZIP_DEFLATED),
    "archive: damaged": damaged,
    "archive: no records": lambda state: b"PK\x05\x06" + bytes(18),
    "archive: half": lambda state: saved(state)[:5000],
    "archive: TorchScript": torchscript,
    "archive: tar": old_tar,
    "counts: epoch": entry("extra_state", "train_iterator", "epoch", value="/../../evil"),
    "counts: negative": entry("extra_state", "train_iterator", "iterations_in_epoch", value=-1),
    "counts: updates": entry("optimizer_history", 0, "num_updates", value="../x"),
    "structure: a list": lambda state: [state],
    "structure: no extra state": entry("extra_state", value="x"),
    "structure: cfg is a text": entry("cfg", value=CALL),
    "structure: cfg is a list": entry("cfg", value=[CALL]),
    "structure: args is a text": lambda state: {**state, "cfg": None, "args": CALL},
    "structure: deep": entry("extra_state", "x", value=deep(100)),
    "structure: YAML": entry("cfg", value="model:\n  _name: transformer"),
    "controls": option("data", "\x1b[2Jdata", "task")["data, cfg"],
}
