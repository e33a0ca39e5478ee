"""Hydra without two steps that it repeats for each composition, and that take 0.2 s or more.

It copies its store of all fairseq's configurations. Nothing writes to that copy: the store itself returns a copy of
each configuration that it is asked for. And it parses the text of each option; a command of fairseq has 250.
"""

import copy
import functools

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser

parse = OverridesParser.parse_rule


@functools.lru_cache(maxsize=10_000)
def parsed(text, rule):
    return parse(OverridesParser.create(), text, rule)


ConfigStore.__deepcopy__ = lambda store, memo: store
OverridesParser.parse_rule = lambda parser, text, rule: copy.copy(parsed(text, rule))
