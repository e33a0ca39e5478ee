"""Hydra without four steps that it repeats for each composition, and that take 0.3 s or more.

It copies its store of all fairseq's configurations. Nothing writes to that copy: the store itself returns a copy of
each configuration that it is asked for. It parses the text of each option; a command of fairseq has 250. It reads the
same YAML files. And it reads the source of each caller, of which it needs the name alone; a test has 50.
"""

import copy
import functools
import inspect
import io
from types import SimpleNamespace

import hydra._internal.utils
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

load = OmegaConf.load
parse = OverridesParser.parse_rule


@functools.lru_cache(maxsize=10_000)
def parsed(text, rule):
    return parse(OverridesParser.create(), text, rule)


@functools.lru_cache(maxsize=1_000)
def loaded(text):
    return load(io.StringIO(text))


ConfigStore.__deepcopy__ = lambda store, memo: store
OverridesParser.parse_rule = lambda parser, text, rule: copy.copy(parsed(text, rule))
OmegaConf.load = staticmethod(lambda file: copy.deepcopy(loaded(file.read())) if hasattr(file, "read") else load(file))
hydra._internal.utils.inspect = SimpleNamespace(stack=lambda: inspect.stack(context=0)[1:])
