"""Hostile checkpoints, by kind. Each is a function that takes a real state and returns a hostile state or bytes."""

import io
import os
import pickle
import subprocess
import tarfile
import tempfile
import zipfile
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from fairseq import utils
from omegaconf import OmegaConf

MARKER = Path(tempfile.gettempdir()) / f"a-checkpoint-ran-{os.getpid()}"  # hostile code creates it when it runs
CALL = f"__import__('os').system('touch {MARKER}')"
OPEN = f"open('{MARKER}', 'w')"


class Made:
    """Pickled as a call with arguments and perhaps a state."""

    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


class Options(Namespace):
    def __getattr__(self, name):
        return os.system(f"touch {MARKER}")


def saved(state, **options):
    content = io.BytesIO()
    torch.save(state, content, **options)
    return content.getvalue()


def calling(function, *arguments):
    """Add an object to the state that is pickled as a call."""
    return lambda state: {**state, "extra": Made(function, arguments)}


def pickled(code):
    """Return an archive with this pickle."""

    def rewrite(state):
        content = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(saved(state))) as old, zipfile.ZipFile(content, "w") as new:
            for name in old.namelist():
                new.writestr(name, code if name.endswith("data.pkl") else old.read(name))
        return content.getvalue()

    return rewrite


def torchscript(state):
    content = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), content)
    return content.getvalue()


def old_tar(state):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("storages", "tensors", "pickle"):
            record = pickle.dumps(Made(os.system, (f"touch {MARKER}",)))
            header = tarfile.TarInfo(name)
            header.size = len(record)
            archive.addfile(header, io.BytesIO(record))
    return content.getvalue()


def forged_array(code, order):
    """An array of bytes, as numpy pickles it, whose type says that they are pointers to objects."""
    kind = Made(np.dtype, (code, False, True), (3, order, None, None, None, 8, 8, 0))
    return Made(*np.empty(0).__reduce__()[:2], (1, (1,), kind, False, bytes(8)))


def flat(state, **options):
    """Convert a state to the older format: one Namespace with all options."""
    sections = [section for section in state.pop("cfg").values() if isinstance(section, dict)]
    values = {name: value for section in sections for name, value in section.items() if name != "_name"}
    names = {"arch": "capsule_transformer_tiny", "task": "translation", "criterion": "cross_entropy"}
    return {**state, "args": Namespace(**{**values, **names, **options})}


def option(name, value, section="model"):
    """Set an option of the model, or of another section."""

    def nested(state):
        part = state["cfg"].get(section)
        state["cfg"][section] = {**(part if isinstance(part, dict) else {}), name: value}
        return state

    return nested


GLOBAL = f"cos\nsystem\n(S'touch {MARKER}'\ntR.".encode()
FILES = {
    "os.system": calling(os.system, f"touch {MARKER}"),
    "subprocess": calling(subprocess.Popen, ["touch", str(MARKER)]),
    "eval": calling(eval, CALL),
    "open": calling(open, str(MARKER), "w"),
    "Path.touch": calling(Path.touch, MARKER),
    "torch.hub": calling(torch.hub.load, "somebody/something", "model"),
    "safe globals": calling(torch.serialization.add_safe_globals, [os.system]),
    "fairseq's eval": calling(utils.eval_str_list, CALL),
    "fairseq's import": calling(utils.import_user_module, Namespace(user_dir="/tmp")),
    "a config": lambda state: {**state, "cfg": OmegaConf.create({"a": "${oc.env:HOME}"})},
    "older format": lambda state: saved(calling(eval, CALL)(state), _use_new_zipfile_serialization=False),
    "older than torch 1": old_tar,
    "TorchScript": torchscript,
    "a pickle alone": lambda state: GLOBAL,
    "GLOBAL REDUCE": pickled(GLOBAL),
    "INST": pickled(f"(S'touch {MARKER}'\nios\nsystem\n.".encode()),
    "STACK_GLOBAL": pickled(b"\x80\x04\x8c\x02os\x8c\x06system\x93(S'touch %s'\ntR." % str(MARKER).encode()),
    "a dotted name": pickled(b"ctorch._utils\n_rebuild_tensor.__globals__\n."),
    "an array of objects": lambda state: {**state, "extra": np.array([Made(eval, (CALL,))], dtype=object)},
    "an array of pointers": lambda state: {**state, "extra": forged_array("O", "|")},
    "an array of pairs": lambda state: {**state, "extra": forged_array([("a", "O")], [])},
    "a half": lambda state: saved(state)[:5000],
}
OPTIONS = {
    "a call": option("adaptive_softmax_cutoff", CALL),
    "a call, args": lambda state: flat(state, adaptive_softmax_cutoff=CALL),
    "a call in a list": option("decoder_attention", [f"[{CALL}]"]),
    "a call in a dict": option("decoder_attention", {"a": {"b": (OPEN,)}}),
    "a call in a Namespace": lambda state: flat(state, decoder_attention=Namespace(a=OPEN)),
    "a call as a key": option("decoder_attention", {OPEN: 1}),
    "a call twice quoted": option("encoder_layers", repr(repr(OPEN))),
    "a call in JSON": option("eval_bleu_args", '{"beam": "' + OPEN + '"}', "task"),
    "bytes": lambda state: flat(state, decoder_attention=OPEN.encode()),
    "a set": option("decoder_attention", {OPEN}),
    "an ordered dict": option("decoder_attention", OrderedDict(a=1)),
    "a class": option("decoder_attention", torch.nn.Parameter),
    "a Namespace of a class": option("decoder_attention", Options()),
    "an f-string": option("decoder_attention", f"f'{{{OPEN}}}'"),
    "a lambda": option("decoder_attention", f"(lambda: {OPEN})()"),
    "a comprehension": option("decoder_attention", "[0 for utils.__dict__['x'] in [1]]"),
    "a walrus": option("decoder_attention", "(x := open)"),
    "escapes": option("decoder_attention", r"'\x5f\x5fimport\x5f\x5f(0)'"),
    "a second line": option("decoder_attention", f"1\n+{OPEN}"),
    "an interpolation": option("dropout", "${oc.env:SECRET}"),
    "an interpolation of a path": lambda state: flat(state, encoder_embed_path="x${oc.env:SECRET}y"),
    "an interpolation in a literal": lambda state: flat(state, dropout=r"'\x24{oc.env:SECRET}'"),
    "a component by a path": lambda state: flat(state, bpe="../../../../../../tmp/evil"),
    "a component by a dotted path": option("_name", "os.system"),
    "a URL": option("bpe_codes", "http://localhost:9/codes", "bpe"),
    "a URL with blanks": option("bpe_codes", "ht\ntp:\n//localhost:9/codes", "bpe"),
    "a URL in JSON": option("eval_bleu_detok_args", '{"bpe_codes": "http://localhost:9/codes"}', "task"),
    "a file to write": option("save_predictions", str(MARKER), "criterion"),
    "a config that is a text": lambda state: {**state, "cfg": CALL},
}
HOSTILE = {**FILES, **OPTIONS}
