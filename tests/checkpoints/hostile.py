"""Hostile checkpoints, by kind. Each is a function that takes a real state and returns a hostile state or bytes."""

import os
import zipfile
from argparse import Namespace

from tests.checkpoints.hostile_files import (
    CALLS,
    NO_ARCHIVE,
    OPCODES,
    TENSORS,
    calling,
    damaged,
    old_tar,
    pickled,
    repacked,
    saved,
    torchscript,
)
from tests.checkpoints.hostile_options import ADDRESSES, EXPRESSIONS, INTERPOLATIONS, NAMES, VALUES, deep
from tests.checkpoints.marker import CALL, MARKER


def flat(state, **options):
    """Convert a state to the older format: one Namespace with all options."""
    sections = [section for section in state.pop("cfg").values() if isinstance(section, dict)]
    values = {name: value for section in sections for name, value in section.items() if name != "_name"}
    names = {"arch": "capsule_transformer_tiny", "task": "translation", "criterion": "cross_entropy"}
    return {**state, "args": Namespace(**{**values, **names, **options})}


def option(name, value, section="model"):
    """Set an option of the model, or of another section, in both formats of a checkpoint."""

    def nested(state):
        part = state["cfg"].get(section)
        state["cfg"][section] = {**(part if isinstance(part, dict) else {}), name: value}
        return state

    return {f"{name}, cfg": nested, f"{name}, args": lambda state: flat(state, **{name: value})}


def entry(*path, value):
    """Set another entry of the state."""

    def place(state):
        owner = state
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = value
        return state

    return place


HOSTILE = {
    **{f"a call of {name}": entry("extra", value=calling(*call)) for name, call in CALLS.items()},
    **{f"opcodes: {name}": pickled(code) for name, code in OPCODES.items()},
    **{
        f"opcodes, no archive: {name}": lambda state, code=code: code
        for name, code in OPCODES.items()
        if name in ("GLOBAL REDUCE", "INST", "STACK_GLOBAL")
    },
    "no archive": lambda state: saved({**state, "x": calling(os.system, f"touch {MARKER}")}, **NO_ARCHIVE),
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
    "structure: task's state": entry("task_state", value=[1]),
    "structure: task's state is none": entry("task_state", value=None),
    "structure: a long name": entry("extra_state", "x" * 5_000_000, value={}),
    "structure: a tuple as a name": entry("extra_state", "x", value={(1, 2): 0}),
    **{
        f"text: one literal many times: {form}": place
        for form, place in option("decoder_attention", [f"[{'1,' * 40_000}]"] * 50_000).items()
    },
    "structure: deep": entry("extra_state", "x", value=deep(100)),
    "structure: YAML": entry("cfg", value="model:\n  _name: transformer"),
    "controls": option("data", "\x1b[2Jdata", "task")["data, cfg"],
}
