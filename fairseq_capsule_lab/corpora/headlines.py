"""The embedded corpus of Chinese news with headlines: scripts/prepare-headlines.sh.

A text has two or three sentences. One sentence tells the event. The other sentences, before or after it, are about
something else and have other numbers and names. The headline states who, what and how much of the event in fewer
characters, and leaves out the rest. A model has to find the event, copy names and numbers, and learn the short words
for the long words.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from capsule_routing.text.preparation import split_into_words
from fairseq_capsule_lab.corpora.splits import Dice
from fairseq_capsule_lab.corpora.toy.recipe import embedded

PHRASES = {"company": "{first}{second}", "percent": "{1-49}.{0-9}%", "date": "{1-12}月{1-28}日"}
_SLOT = re.compile(r"{(\w+?)(?:([-<])(\w+))?}")


class Event(NamedTuple):
    """An event, as templates. `{2-9}` is a number, `{city}` a word or a phrase; or else what was drawn for the name.

    What is drawn first, in this order, is `name=template`; or only `city`, which is `city={city}`. Several alternatives
    are `long short=获得了冠军/夺冠|进入了决赛/进决赛`.
    """

    draws: str
    text: str  # its sentence, without the full stop
    headline: str
    aside: str  # a sentence that may stand beside it


_TEXT = Path(__file__).with_name("headlines.txt").read_text(encoding="utf-8")
_words, *_events, BESIDE = (block.splitlines() for block in re.sub("#.*\n", "", _TEXT).split("\n\n"))
EVENTS = [Event(*lines) for lines in _events]
WORDS = {name: words.split() for name, _, words in (line.partition(": ") for line in _words)}
WORDS["price"] = [str(100 * hundreds - 1) for hundreds in range(3, 100)]
WORDS["place"] = WORDS["city"] + WORDS["province"]


@functools.cache
def _alternatives(draws: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the names of each draw, and the templates of each of its alternatives."""
    entries = (entry.partition("=") for entry in draws.split("; "))
    named = ((names, templates or f"{{{names}}}") for names, _, templates in entries)
    return [(names.split(), [one.split("/") for one in templates.split("|")]) for names, templates in named]


_pieces = functools.cache(_SLOT.split)  # of a template: text, and the three groups of each slot


def _fill(template: str, dice: Dice, values: Mapping[str, str]) -> str:
    """Return a template with words and numbers. `values` are those of names that were drawn before."""
    text, *slots = _pieces(template)
    for name, kind, last, after in zip(slots[::4], slots[1::4], slots[2::4], slots[3::4]):
        if name in values:
            text += values[name]
        elif name in WORDS:
            text += dice.choose(WORDS[name])
        elif kind:
            most = int(values.get(last, last)) - (kind == "<")
            text += str(int(name) + dice.choose(range(most - int(name) + 1)))
        elif name in PHRASES:
            text += _fill(PHRASES[name], dice, {})
        else:
            assert name == "person"
            names = "".join(dice.choose(WORDS["forename"]) for _ in range(1 + dice.chance(0.7)))
            text += dice.choose(WORDS["surname"]) + names
        text += after
    return text


def article_pairs(seed: int) -> Iterator[tuple[str, str]]:
    """An infinite sequence of (text, headline) pairs, the same for a seed."""
    dice = Dice(seed)
    while True:
        event, values = dice.choose(EVENTS), dict[str, str]()
        for names, alternatives in _alternatives(event.draws):
            templates = dice.choose(alternatives) if len(alternatives) > 1 else alternatives[0]
            values.update({name: _fill(template, dice, values) for name, template in zip(names, templates)})
        text, headline, aside = (_fill(template, dice, values) for template in event[1:])
        sentences = [text]
        if dice.chance(0.6):
            sentences.append(aside)
        if len(sentences) == 1 or dice.chance(0.4):
            place = dice.choose((0, len(sentences)))
            sentences.insert(place, dice.choose([_fill(template, dice, {}) for template in BESIDE]))
        yield "。".join(sentences) + "。", headline


HEADLINES = embedded(
    script="prepare-headlines.sh",
    title="summarisation corpus, short Chinese news with headlines,",
    languages=("text", "summary"),
    pairs=article_pairs,
    filters=[functools.partial(split_into_words, settings={"script": "prepare-headlines.sh"})],
    vocabulary=3500,
    notes="The tokens are characters. Source and target are called `text` and `summary` and share a dictionary.",
    results={
        "OUT/raw": "the generated text and references for ROUGE; OUT/characters: its next stage; OUT/dict.txt",
    },
)
