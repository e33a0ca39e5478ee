"""Hostile values of a config's options, by kind."""

import os
from argparse import Namespace
from collections import OrderedDict, UserDict, defaultdict
from enum import Enum
from fractions import Fraction

import numpy as np
import torch
from omegaconf import OmegaConf

from tests.checkpoints.hostile_files import calling
from tests.checkpoints.marker import CALL, MARKER, OPEN


class Colour(Enum):
    RED = CALL


class Words(str):
    def __len__(self):
        return os.system(f"touch {MARKER}")


class Options(Namespace):
    def __getattr__(self, name):
        return os.system(f"touch {MARKER}")


def a_list_of_itself():
    items = []
    items.append(items)
    return items


def laughs():
    """Return 30 nested lists that expand to 2^30."""
    items = []
    for _ in range(30):
        items = [items, items]
    return items


def deep(levels):
    items = "x"
    for _ in range(levels):
        items = [items]
    return items


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
    "numpy objects": np.array([calling(os.system, f"touch {MARKER}")], dtype=object),
    "numpy numbers": np.arange(3),
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
