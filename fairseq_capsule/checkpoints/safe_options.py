"""Checks of the options of a checkpoint.

fairseq evaluates some options as Python, builds the components that they name, and opens files and fetches URLs.
Therefore all options of a checkpoint must keep the rules of SECURITY.md. The command line is not checked.
"""

import ast
import dataclasses
import json
import re
from argparse import Namespace
from typing import Any, Set

from fairseq.dataclass.configs import CheckpointConfig, CommonConfig, DistributedTrainingConfig
from fairseq.registry import REGISTRIES

from capsule_routing.errors import UserError

# Options that name files, folders and projects of logging services, which fairseq never evaluates, and options of
# optimisers, which are built from the command line, never from a checkpoint.
FREE_TEXT = re.compile(
    r".*(dir|file|path|json|yaml|manifest|checkpoint|project)"
    r"|(.*_)?(data|codes|model|vocab|merges|baseline|bpe|dict|from|once|repo)"
    r"|(adam|adamax|lamb)_betas|adafactor_eps"
)

# Plain text must not contain these. An expression needs them to call, subscript, assign, quote, format or escape.
NOT_PLAIN = re.compile(r"[][(){}'\"=$\\]")

# All parts of a literal, or of sums and products, such as the layers of fairseq's convolutional models:
# `[(512, 3)] * 9 + [(1024, 3)] * 4`.
LITERAL = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Load),
    *(ast.UnaryOp, ast.UAdd, ast.USub, ast.BinOp, ast.Add, ast.Mult),
)

COMPONENT_NAME = re.compile(r"[\w-]*|\?\?\?")  # "???": none chosen
ADDRESS = re.compile(r":\s*/\s*/")  # a URL, also one with white space, which is removed when it is fetched

# Options of the training that may be URLs (other processes, places to save and log). Loading a model does not use them.
TRAINING = (CommonConfig, CheckpointConfig, DistributedTrainingConfig)
OF_THE_TRAINING = {item.name for config in TRAINING for item in dataclasses.fields(config)}

WRITTEN = "save_predictions"  # a file that a criterion of fairseq opens for writing when it is built
LOGGING = "job_logging_cfg."  # format strings of Python's logging; nothing reads them from a checkpoint


def check_config(state: Any) -> None:
    """Raise a UserError that names the option if an option of a checkpoint breaks a rule."""
    if type(state) is not dict:
        raise UserError(f"it is not a checkpoint of fairseq: it contains a {type(state).__name__}")
    for part, kind in (("cfg", dict), ("args", Namespace)):
        if type(state.get(part)) not in (type(None), kind):
            raise UserError(f"its {part} is of type {type(state[part]).__name__}, which is not a config")
        _check("", part, state.get(part))


def _check(name: str, key: str, value: Any) -> None:
    """Check a value of the option `key` with the dotted name `name`, and all that it contains."""
    kind = type(value)  # exactly: an object of a subclass could have other methods
    if kind in (dict, Namespace):
        for inner, item in (value if kind is dict else vars(value)).items():
            dotted = f"{name}.{inner}" if name else str(inner)
            _check(dotted, "", inner)
            _check(dotted, str(inner), item)
    elif kind in (list, tuple):
        for item in value:
            _check(name, key, item)
    elif kind is str:
        _check_text(name, key, value)
    elif kind not in (type(None), bool, int, float):
        raise UserError(f"its option {name} is of type {kind.__name__}; options are numbers, texts, lists or dicts")


def _check_text(name: str, key: str, text: str) -> None:
    problem = ""
    if "${" in text:
        problem = "is an interpolation"
    elif name.startswith(LOGGING):
        return
    elif key in ("_name", "arch", "task", *REGISTRIES) and not COMPONENT_NAME.fullmatch(text):
        problem = "is not the name of a component"
    elif key == WRITTEN:
        problem = "would write a file"
    elif ADDRESS.search(text) and key not in OF_THE_TRAINING and text not in _default_addresses():
        problem = "is a URL that would be fetched"
    elif NOT_PLAIN.search(text):
        try:
            content = _constants(text)
        except ValueError:
            problem = "" if FREE_TEXT.fullmatch(key) else "is neither plain text nor a literal, so fairseq could run it"
        else:
            _check(name, key, content)
    if problem:
        raise UserError(f"its option {name} {problem}: {text[:80]!r}")


def _constants(text: str) -> Any:
    """Return the constants of a Python literal, or the content of JSON. Raise a ValueError for other texts."""
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
        if all(isinstance(node, LITERAL) for node in nodes):
            return [node.value for node in nodes if isinstance(node, ast.Constant)]
    except SyntaxError:
        pass
    return json.loads(text)


def _default_addresses() -> Set[str]:
    """Return the URLs that are defaults of fairseq's options, such as those of GPT-2's vocabulary."""
    configs = (config for registry in REGISTRIES.values() for config in registry["dataclass_registry"].values())
    return {str(item.default) for config in configs for item in dataclasses.fields(config)}
