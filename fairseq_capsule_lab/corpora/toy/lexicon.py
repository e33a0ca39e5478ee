"""The words of words.txt by class, with the words that are derived from them."""

from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Tuple, TypeVar

from fairseq_capsule_lab.corpora.toy import inflection
from fairseq_capsule_lab.corpora.toy.inflection import Determiner

Key = TypeVar("Key")
Item = TypeVar("Item")


def _entries() -> Iterator[Tuple[str, Tuple[Tuple[str, ...], Tuple[str, str]]]]:
    """The section, and the other words of its heading with the English and the German words of an entry."""
    text = Path(__file__).with_name("words.txt").read_text(encoding="utf-8")
    for block in "\n".join(line for line in text.splitlines() if not line.startswith("#")).split("[")[1:]:
        heading, _, words = block.partition("]")
        section, *arguments = heading.split()
        for word in filter(str.strip, words.replace("\n", ";").split(";")):
            english, _, german = word.partition(":")
            yield section, (tuple(arguments), (english.strip(), german.strip()))


def by_key(pairs: Iterable[Tuple[Key, Item]]) -> Dict[Key, List[Item]]:
    """The items of each key, in their order."""
    groups: Dict[Key, List[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


_SECTIONS = by_key(_entries())
WORDS = by_key((" ".join((name, *heading)), words) for name in _SECTIONS for heading, words in _SECTIONS[name])
_GROUPS = dict(WORDS["group"])


def _kinds(name: str) -> Tuple[str, ...]:
    """The kinds of nouns in a group: living is person, animal."""
    return tuple(kind for part in _GROUPS[name].split() for kind in _kinds(part)) if name in _GROUPS else (name,)


TIMES = by_key((tense, words) for tenses, words in _SECTIONS["time"] for tense in tenses)
PREPOSITIONS = by_key((role, (first, *second.split())) for (role,), (first, second) in _SECTIONS["preposition"])
VERBS = by_key(
    (frame, inflection.verb(frame, list(map(_kinds, roles)), *words)) for (frame, *roles), words in _SECTIONS["verb"]
)

# By kind of noun. A compound calls an animal after the place where it lives.
NOUNS = by_key((kind, inflection.noun(kind, *words)) for (kind, *_), words in _SECTIONS["noun"])
_SMALL = [(kind, noun, noun.small) for kind in NOUNS for noun in NOUNS[kind] if noun.small]
_AGENTS = [(noun, noun.german + "in") for noun in NOUNS["person"][-len(WORDS["noun person agent"]) :]]
DERIVED_NOUNS = by_key(
    [("person", noun.extend("female", "f", *[german] * 3, german + "nen")) for noun, german in _AGENTS]
    + [(kind, noun.extend("little", "n", *[german] * 2, german + "s", german)) for kind, noun, german in _SMALL]
)
_FIRST = WORDS["modifier"] + [(noun.english[0], noun.linking) for kind in NOUNS for noun in NOUNS[kind] if noun.linking]
MODIFIERS = {kind: _FIRST for kind in NOUNS if kind not in ("person", "animal", "topic")}
MODIFIERS["animal"] = [(noun.english[0], noun.linking) for noun in NOUNS["place"]]
ADJECTIVES = by_key(
    [
        ((kind, adjective.degree), adjective)
        for groups, words in _SECTIONS["adjective"]
        for adjective in inflection.adjectives(*words)
        for group in groups
        for kind in _kinds(group)
    ]
    + [
        ((kind, "participle"), inflection.participle(verb))
        for verb in VERBS["intransitive"] + VERBS["transitive"]
        if not verb.particle
        for kind in verb.objects or verb.subjects
    ]
)

# By their heading: definite or not, endings, weights of the singular and of the plural.
_NUMBERS = WORDS["number"] + WORDS["ten"]
_NUMBERS += [(f"{ten}-{one}", f"{eins}und{zehn}") for ten, zehn in WORDS["ten"] for one, eins in WORDS["number"]]
DETERMINERS = by_key((heading, Determiner(*words, heading[1])) for heading, words in _SECTIONS["determiner"])
DETERMINERS["definite", "bare", "8", "3"] = [Determiner(f"{name}_'s", f"{name}s", "bare") for name, _ in WORDS["name"]]
DETERMINERS["indefinite", "bare", "0", "12"] = [Determiner(*number, "bare") for number in _NUMBERS]
DETERMINERS["indefinite", "bare", "0", "8"] = [Determiner("", "", "bare")]
