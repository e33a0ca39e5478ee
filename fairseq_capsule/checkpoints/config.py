"""Checks of the config of a checkpoint.

fairseq builds the components that the config names, evaluates some strings as Python, opens files and fetches URLs.
Therefore a config must keep the rules of SECURITY.md, in all its parts and options.
"""

import ast
import dataclasses
import json
import math
import re
from argparse import Namespace
from typing import Any, Dict, Iterator, Optional, Tuple

from fairseq.dataclass.configs import CheckpointConfig, CommonConfig, DistributedTrainingConfig
from fairseq.registry import REGISTRIES

from capsule_routing.errors import UserError

DEEPEST, MOST_VALUES, MOST_TEXT, LONGEST_NAME = 20, 100_000, 1_000_000, 200
LONGEST_LITERAL, LONGEST_LIST = 100_000, 10_000  # Python's parser takes seconds for longer texts

# Options that name files, folders and projects of logging services. fairseq never evaluates them.
FREE_TEXT = re.compile(
    r".*(dir|file|path|json|yaml|manifest|checkpoint|project)"
    r"|(.*_)?(data|codes|model|vocab|merges|baseline|bpe|dict|from|once|repo)"
)

# Plain text must not contain these. An expression needs them to call, subscript, assign, quote, format or escape. `**`
# and `<<` would allow `9**9**9` or `1<<9999999999`, which never finish.
NOT_PLAIN = re.compile(r"[][(){}'\"=$`\\]|\*\*|<<")

COMPONENT_NAME = re.compile(r"[\w.-]*|\?\?\?")  # "???": none chosen

# A URL, also one with blanks, which are removed when it is fetched.
ADDRESS = re.compile(r":[\x00-\x20]*/[\x00-\x20]*/")

# Control characters, which would affect a terminal when the config is logged.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# Options of the training that may be URLs (other processes, places to save and log). Loading a model does not use them.
TRAINING = (CommonConfig, CheckpointConfig, DistributedTrainingConfig)
OF_THE_TRAINING = {item.name for config in TRAINING for item in dataclasses.fields(config)}

# fairseq's options that open a file for writing when a component is built. Loading a model reaches no other place in
# fairseq that writes a file or starts a program; a test fails if fairseq gets a new such place.
WRITTEN = {"save_predictions"}

# Format strings of Python's logging, from the training. Nothing reads them from a checkpoint.
LOGGING = "job_logging_cfg."


def check_config(state: Dict[str, Any]) -> None:
    """Raise a UserError that names the option if the config of a checkpoint, built by `contents`, breaks a rule."""
    for part, kinds in (("cfg", (type(None), dict)), ("args", (type(None), Namespace))):
        if type(state.get(part)) not in kinds:
            raise UserError(f"its {part} is of type {type(state[part]).__name__}, which is not a config")
    components = {"_name", "arch", "task", *REGISTRIES}
    # URLs that are defaults of fairseq's options, such as those of GPT-2's vocabulary.
    configs = (config for registry in REGISTRIES.values() for config in registry["dataclass_registry"].values())
    defaults = {str(item.default) for config in configs for item in dataclasses.fields(config)}
    characters = 0
    values = (item for part in ("cfg", "args") for item in _values("", part, state.get(part), 0))
    for count, (name, key, value) in enumerate(values):
        characters += len(value) if isinstance(value, str) else 0
        if count > MOST_VALUES or characters > MOST_TEXT:
            most = f"{MOST_VALUES} values, or more than {MOST_TEXT} characters of text"
            raise UserError(f"its config has more than {most}")
        if key in WRITTEN and value is not None:
            raise UserError(f"its option {name} would write a file: {_excerpt(value)}")
        if not isinstance(value, str):
            continue
        if "${" in value:
            raise UserError(f"its option {name} is an interpolation, which is not allowed: {_excerpt(value)}")
        if CONTROLS.search(value):
            raise UserError(f"its option {name} has control characters: {_excerpt(value)}")
        if name.startswith(LOGGING):
            continue
        if key in components and not COMPONENT_NAME.fullmatch(value):
            raise UserError(f"its option {name} is not the name of a component: {_excerpt(value)}")
        if ADDRESS.search(value) and key not in OF_THE_TRAINING and value not in defaults:
            raise UserError(f"its option {name} is a URL that would be fetched: {_excerpt(value)}")


def _values(name: str, key: str, value: Any, depth: int) -> Iterator[Tuple[str, str, Any]]:
    """Yield each value and container of nested options, as (dotted name, option name, value).

    The content of a literal is included, also if the text names a file, because fairseq parses such options as literals
    too.
    """
    if depth > DEEPEST:
        raise UserError(f"its option {name} has more than {DEEPEST} levels of nesting")
    yield name or key, key, value
    kind = type(value)
    if kind in (list, tuple):
        for index, item in enumerate(value):
            yield from _values(f"{name or key}.{index}", key, item, depth + 1)
    elif kind in (dict, Namespace):
        for inner, item in (value if kind is dict else vars(value)).items():
            inner = str(inner)
            if not inner.isprintable() or len(inner) > LONGEST_NAME:
                raise UserError(f"its config has an option with an invalid name: {_excerpt(inner)}, in {name or key}")
            if NOT_PLAIN.search(inner):
                raise UserError(f"its config has an option with a name that is not plain text: {_excerpt(inner)}")
            yield from _values(f"{name}.{inner}" if name else inner, inner, item, depth + 1)
    elif kind is str and NOT_PLAIN.search(value) and not name.startswith(LOGGING):
        try:
            content = literal(value)
        except ValueError:
            if FREE_TEXT.fullmatch(key):
                return
            problem = "neither plain text nor a literal, so fairseq could run it"
            raise UserError(f"its option {name} is {problem}: {_excerpt(value)}") from None
        yield from _values(name or key, key, content, depth + 1)
    elif kind not in (type(None), bool, int, float, str):
        allowed = "options must be numbers, strings, lists or dicts"
        raise UserError(f"its option {name or key} is of type {kind.__module__}.{kind.__qualname__}; {allowed}")


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def literal(text: str) -> Any:
    """Return the value of a Python or JSON literal: None, bools, numbers, strings, and lists, tuples and dicts of them.

    Sums of lists and products of a list and a number are allowed too, for the layers of fairseq's convolutional models:
    `[(512, 3)] * 9 + [(1024, 3)] * 4`. Other texts raise a ValueError, and what is no text a TypeError, which fairseq's
    `eval_bool` expects from `eval`.
    """
    if not isinstance(text, str):
        raise TypeError(f"a literal must be a string, not {type(text).__name__}")
    if len(text) > LONGEST_LITERAL:
        raise ValueError(f"not a literal: it has {len(text)} characters, more than {LONGEST_LITERAL}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"not a literal: {_excerpt(text)}") from None


def _value(node: Optional[ast.expr]) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return node.value
        case ast.List():
            return [_value(item) for item in node.elts]
        case ast.Tuple():
            return tuple(_value(item) for item in node.elts)
        case ast.Dict():  # the key of `**other` is None, which is not a node
            return {_value(key): _value(item) for key, item in zip(node.keys, node.values)}
        case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
            number = _value(node.operand)
            if type(number) in (int, float):
                return +number if isinstance(node.op, ast.UAdd) else -number
        case ast.BinOp(op=ast.Add() | ast.Mult()):
            left, right = _value(node.left), _value(node.right)
            kinds, adds = {type(left), type(right)}, isinstance(node.op, ast.Add)
            if kinds == ({list} if adds else {list, int}):
                sizes = [len(side) if type(side) is list else side for side in (left, right)]
                if (sum(sizes) if adds else math.prod(sizes)) <= LONGEST_LIST:
                    return left + right if adds else left * right
    raise ValueError("not a literal")
