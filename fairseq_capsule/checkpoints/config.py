"""The config of a checkpoint: which values it may hold.

fairseq builds what the config names, evaluates some of its texts as Python, opens files and fetches addresses. So a
config is data by these rules, each for every option, whatever part of the config it stands in:

- it holds None, bools, numbers, texts, and lists, tuples, dicts and Namespaces of these, and nothing else;
- no text has an interpolation (`${…}`), so that none is ever resolved;
- a text is plain, or a literal; one that names a file or folder may be any other. None has control characters;
- a component (a model, task, tokeniser, …) is called by a plain name;
- no address is fetched but fairseq's own defaults;
- no file is named that would be written.
"""

import dataclasses
import re
from argparse import Namespace
from typing import Any, Dict, Iterator, Tuple

from fairseq.dataclass.configs import CheckpointConfig, CommonConfig, DistributedTrainingConfig
from fairseq.registry import REGISTRIES
from omegaconf import DictConfig, ListConfig, OmegaConf

from fairseq_capsule.checkpoints.literals import literal
from fairseq_capsule.errors import UserError

DEEPEST, MOST_VALUES, LONGEST_NAME = 20, 100_000, 200

# Options that name files and folders, and the projects of logging services: fairseq never evaluates them.
FREE_TEXT = re.compile(
    r".*(dir|file|path|json|yaml|manifest|checkpoint|project)"
    r"|(.*_)?(data|codes|model|vocab|merges|baseline|bpe|dict|from|once|repo)"
)

# What a plain text does not hold: by these an expression calls, subscripts, assigns, quotes, formats or hides; and
# `9**9**9` or `1<<9999999999` are never done.
NOT_PLAIN = re.compile(r"[][(){}'\"=$`\\]|\*\*|<<")

COMPONENT_NAME = re.compile(r"[\w.-]*|\?\?\?")  # "???": none chosen

# An address, also one that is written with blanks, which are dropped where it is fetched.
ADDRESS = re.compile(r":[\x00-\x20]*/[\x00-\x20]*/")

# Of a terminal, which a logged config would control.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# A training's own addresses (other processes, where it saves and logs), which nothing that loads a model uses.
OF_THE_TRAINING = {
    item.name
    for config in (CommonConfig, CheckpointConfig, DistributedTrainingConfig)
    for item in dataclasses.fields(config)
}

# Options of fairseq's that open a file for writing as soon as the component is built.
WRITTEN = {"save_predictions"}

# How a training wrote its log, in texts of Python's logging; nothing reads it from a checkpoint.
LOGGING = "job_logging_cfg."


def check_config(state: Dict[str, Any]) -> None:
    """Raise UserError, which names the option, unless the config of a checkpoint keeps the rules."""
    for part, kinds in (("cfg", (type(None), dict, DictConfig)), ("args", (type(None), Namespace))):
        if type(state.get(part)) not in kinds:
            raise UserError(f"its {part} is of type {type(state[part]).__name__}, which is no config")
    check = _Rules()
    values = (item for part in ("cfg", "args") for item in _values("", part, state.get(part), 0))
    for count, (name, key, value) in enumerate(values):
        if count > MOST_VALUES:
            raise UserError(f"its config holds more than {MOST_VALUES} values")
        check(name, key, value)


class _Rules:
    """What one option may be, given what fairseq has registered."""

    def __init__(self):
        self.components = {"_name", "arch", "task", *REGISTRIES}
        # Those that fairseq itself gives its options, such as those of GPT-2's vocabulary.
        configs = [config for registry in REGISTRIES.values() for config in registry["dataclass_registry"].values()]
        defaults = (item.default for config in configs for item in dataclasses.fields(config))
        self.addresses = {value for value in defaults if isinstance(value, str) and ADDRESS.search(value)}

    def __call__(self, name: str, key: str, value: Any) -> None:
        if key in WRITTEN and value is not None:
            raise UserError(f"its option {name} would write a file: {_shown(value)}")
        if not isinstance(value, str):
            return
        if "${" in value:
            raise UserError(f"its option {name} is an interpolation, which is never resolved: {_shown(value)}")
        if CONTROLS.search(value):
            raise UserError(f"its option {name} has control characters: {_shown(value)}")
        if name.startswith(LOGGING):
            return
        if key in self.components and not COMPONENT_NAME.fullmatch(value):
            raise UserError(f"its option {name} is no name of a component: {_shown(value)}")
        if ADDRESS.search(value) and key not in OF_THE_TRAINING and value not in self.addresses:
            raise UserError(f"its option {name} is an address, which would be fetched: {_shown(value)}")
        if NOT_PLAIN.search(value):
            self._check_literal(name, key, value)

    def _check_literal(self, name: str, key: str, text: str) -> None:
        """By the same rules for the texts in it; fairseq reads a literal for a file's name too, if that is no text."""
        try:
            value = literal(text)
        except ValueError:
            if FREE_TEXT.fullmatch(key):
                return
            raise UserError(
                f"its option {name} is neither plain text nor a literal, and fairseq could run it: {_shown(text)}"
            ) from None
        for inner, inner_key, item in _values(name, key, value, 0):
            self(inner, inner_key, item)


def _values(name: str, key: str, value: Any, depth: int) -> Iterator[Tuple[str, str, Any]]:
    """Every value and every container of nested options: its dotted name, the option's own name, the value."""
    if depth > DEEPEST:
        raise UserError(f"its option {name} is nested more than {DEEPEST} deep")
    if type(value) in (DictConfig, ListConfig):
        value = OmegaConf.to_container(value, resolve=False)
    yield name or key, key, value
    kind = type(value)
    if kind in (list, tuple):
        for index, item in enumerate(value):
            yield from _values(f"{name or key}.{index}", key, item, depth + 1)
    elif kind in (dict, Namespace):
        for inner, item in (value if kind is dict else vars(value)).items():
            if type(inner) is int:
                inner = str(inner)
            elif type(inner) is not str or not inner.isprintable() or len(inner) > LONGEST_NAME:
                raise UserError(f"its config has an option whose name is no name: {_shown(inner)}, in {name or key}")
            elif NOT_PLAIN.search(inner):
                raise UserError(f"its config has an option whose name is no plain text: {_shown(inner)}")
            yield from _values(f"{name}.{inner}" if name else inner, inner, item, depth + 1)
    elif kind not in (type(None), bool, int, float, str):
        raise UserError(
            f"its option {name or key} is of type {kind.__module__}.{kind.__qualname__}; "
            "options are numbers, texts, lists and dicts"
        )


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # whatever it is, it is refused
        text = type(value).__qualname__
    return text if len(text) <= 80 else f"{text[:80]}…"
