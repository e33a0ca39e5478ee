"""Prepare a corpus, and binarise it for fairseq. Each has its own options and help:

  fairseq-capsule prepare NAME [OPTION VALUE]... OUT

NAME           own (your own parallel text), multi30k, wmt16-en-ro, nist-zh-en, lcsts, toy or headlines.
               scripts/prepare-NAME.sh is the same command; own is scripts/prepare.sh

  fairseq-capsule prepare NAME --help
"""

from collections.abc import Sequence
from importlib import import_module

from fairseq_capsule_lab.cli.arguments import read_words
from fairseq_capsule_lab.corpora.own import take_texts
from fairseq_capsule_lab.corpora.preparation import prepare
from fairseq_capsule_lab.corpora.recipe import Recipe
from fairseq_capsule_lab.errors import LabError

# The module of each corpus, and its recipe there.
CORPORA = {
    "own": ("own", "OWN"),
    "multi30k": ("multi30k", "MULTI30K"),
    "wmt16-en-ro": ("wmt16", "EN_RO"),
    "nist-zh-en": ("nist", "ZH_EN"),
    "lcsts": ("lcsts", "LCSTS"),
    "toy": ("embedded", "TOY"),
    "headlines": ("embedded", "HEADLINES"),
}


def help_of(program: str, words: Sequence[str]) -> str:
    """Return the help of a corpus, or of all."""
    if not words or words[0] not in CORPORA:
        return __doc__ or ""
    recipe = _recipe(words[0])
    return recipe.help().replace(recipe.script, _named(program, words[0]))


def run(program: str, words: Sequence[str]) -> None:
    if not words or words[0] not in CORPORA:
        raise LabError(f"name one of the corpora {', '.join(CORPORA)} (see --help)")
    name, *words = words
    recipe = _recipe(name)
    texts, rest = take_texts(words) if name == "own" else ({}, words)
    choices, places = read_words(rest, recipe.names(), recipe.names(flags=True))
    if not places:
        raise LabError("name the folder OUT to make (see --help)")
    if len(places) > 1:
        raise LabError(f"name one folder OUT, not both '{places[0]}' and '{places[1]}' (see --help)")
    prepare(recipe, {**choices, **texts}, _named(program, name), words, places[0])


def _named(program: str, name: str) -> str:
    return f"{program} {name}" if program.endswith(" prepare") else program


def _recipe(name: str) -> Recipe:
    module, recipe = CORPORA[name]
    return getattr(import_module(f"fairseq_capsule_lab.corpora.{module}"), recipe)
