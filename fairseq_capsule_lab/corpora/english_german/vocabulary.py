"""The whole vocabulary: the lexicon and derived words, sorted by their use in a sentence."""

from typing import Dict, List, Tuple

from fairseq_capsule_lab.corpora.english_german import derivation
from fairseq_capsule_lab.corpora.english_german.lexemes import (
    ANIMAL,
    CLOTHING,
    KINDS,
    PERSON,
    PLACE,
    THING,
    TOPIC,
    Adjective,
    Adverb,
    Noun,
    Verb,
)
from fairseq_capsule_lab.corpora.english_german.lexicon.adjectives import ADJECTIVES, MANNER_TABLE
from fairseq_capsule_lab.corpora.english_german.lexicon.nouns import MODIFIERS, NOUNS
from fairseq_capsule_lab.corpora.english_german.lexicon.tables import rows
from fairseq_capsule_lab.corpora.english_german.lexicon.verbs import INTRANSITIVE, TRANSITIVE, VERBS

# Nouns without an umlaut in the diminutive: foreign words, or words stressed at the end.
_NO_DIMINUTIVE = frozenset((
    "Hotel", "Büro", "Theater", "Bibliothek", "Fabrik", "Bäckerei", "Elefant", "Hafen", "Schule", "Tal",
))  # fmt: skip
_DIMINUTIVE_KINDS = (ANIMAL, CLOTHING, THING, PLACE)


def _agents() -> List[Noun]:
    agents = []
    for entry in VERBS:
        for note, english in entry.derives:
            if note in ("agent", "agent~"):
                agents.append(derivation.agent(entry.verb, english, fronted=note == "agent~"))
    return agents


def _nominals() -> List[Noun]:
    return [
        derivation.nominal(entry.verb, english) for entry in VERBS for note, english in entry.derives if note == "noun"
    ]


def _able() -> List[Adjective]:
    verbs = [entry.verb for entry in VERBS if "able" in dict(entry.derives)]
    adjectives = [derivation.able(verb) for verb in verbs]
    return adjectives + [derivation.negated(adjective) for adjective in adjectives]


def _participles() -> List[Adjective]:
    """Participles of verbs without a particle: in English, as in German, they stand before the noun."""
    verbs = [entry.verb for entry in VERBS if not entry.verb.english.particle]
    present = [derivation.present_participle(verb) for verb in verbs if verb.frame == INTRANSITIVE]
    return present + [derivation.past_participle(verb) for verb in verbs if verb.frame == TRANSITIVE]


def _degrees() -> List[Dict[str, Adjective]]:
    return [
        derivation.degrees(entry.adjective, fronted="umlaut" in entry.derives)
        for entry in ADJECTIVES
        if {"compare", "umlaut"} & set(entry.derives)
    ]


def _derived(note: str, rule) -> list:
    return [rule(entry.adjective) for entry in ADJECTIVES if note in entry.derives]


def _by_kind(words: list, kinds_of) -> Dict[str, tuple]:
    return {kind: tuple(word for word in words if kind in kinds_of(word)) for kind in KINDS}


_AGENTS = _agents()
_SUPERLATIVES = [degrees["superlative"] for degrees in _degrees()]
_COMPARATIVES = [degrees["comparative"] for degrees in _degrees()]

PLAIN_NOUNS: Dict[str, Tuple[Noun, ...]] = _by_kind(list(NOUNS), lambda noun: (noun.kind,))
DERIVED_NOUNS: Dict[str, Tuple[Noun, ...]] = _by_kind(
    _AGENTS
    + [derivation.feminine(noun) for noun in _AGENTS]
    + _nominals()
    + [
        derivation.diminutive(noun)
        for noun in NOUNS
        if noun.kind in _DIMINUTIVE_KINDS and noun.german not in _NO_DIMINUTIVE
    ],
    lambda noun: (noun.kind,),
)
QUALITIES: Tuple[Noun, ...] = tuple(_derived("ness", derivation.quality))
_HABITATS = tuple((noun.english, noun.linking) for noun in NOUNS if noun.kind == PLACE)
_LINKING = MODIFIERS + tuple((noun.english, noun.linking) for noun in NOUNS + tuple(_nominals()) if noun.linking)
# The first part of a compound by the kind of its head: for an animal, the place where it lives.
LINKING: Dict[str, Tuple[Tuple[str, str], ...]] = {
    kind: _HABITATS if kind == ANIMAL else _LINKING for kind in KINDS if kind not in (PERSON, TOPIC)
}

PLAIN_ADJECTIVES: Dict[str, Tuple[Adjective, ...]] = _by_kind(
    [entry.adjective for entry in ADJECTIVES], lambda adjective: adjective.kinds
)
DERIVED_ADJECTIVES: Dict[str, Tuple[Adjective, ...]] = _by_kind(
    _COMPARATIVES + _SUPERLATIVES + _derived("un", derivation.negated) + _participles() + _able(),
    lambda adjective: adjective.kinds,
)
COMPARATIVES: Dict[str, Tuple[Adjective, ...]] = _by_kind(_COMPARATIVES, lambda adjective: adjective.kinds)
SUPERLATIVES = frozenset(_SUPERLATIVES)
MANNERS: Tuple[Adverb, ...] = tuple(Adverb(*columns) for columns in rows(MANNER_TABLE)) + tuple(
    _derived("ly", derivation.manner)
)


def verbs(frame: str) -> Tuple[Verb, ...]:
    """The verbs of a frame."""
    return tuple(entry.verb for entry in VERBS if entry.verb.frame == frame)


PERSONS = PLAIN_NOUNS[PERSON]
