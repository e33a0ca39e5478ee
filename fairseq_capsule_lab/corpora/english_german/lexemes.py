"""Lexemes: the properties of a word in both languages."""

from dataclasses import dataclass
from typing import Tuple

PERSON, ANIMAL, FOOD, TEXT, DEVICE, CLOTHING, THING, PLACE, TOPIC = KINDS = (
    "person", "animal", "food", "text", "device", "clothing", "thing", "place", "topic",
)  # fmt: skip
SINGULAR, PLURAL = "singular", "plural"
LIVING = (PERSON, ANIMAL)
OBJECTS = (FOOD, TEXT, DEVICE, CLOTHING, THING)


@dataclass(frozen=True)
class Noun:
    """A noun. `kind` determines the verbs and adjectives that it occurs with.

    `oblique` is the accusative and dative singular, which differs from `german` only in weak masculines (der Junge, den
    Jungen). `linking` is the form that begins a compound (Küchen|tür), empty for a noun that begins none.
    """

    kind: str
    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    genitive: str
    oblique: str
    linking: str = ""


@dataclass(frozen=True)
class Adjective:
    """An adjective. `stem` takes the endings (dunkel, dunkl-e); `kinds` are the nouns that it can describe."""

    kinds: Tuple[str, ...]
    english: str
    german: str
    stem: str


@dataclass(frozen=True)
class EnglishVerb:
    """An English verb. `particle` follows it: an adverb (turn on) or a preposition (look at)."""

    base: str
    past: str
    participle: str
    particle: str = ""


@dataclass(frozen=True)
class GermanVerb:
    """A German verb. `prefix` is separable (an|rufen); the other fields omit it. `present` is the third person."""

    prefix: str
    infinitive: str
    present: str
    past: str
    participle: str
    auxiliary: str = "haben"


@dataclass(frozen=True)
class Preposition:
    """A pair of prepositions and the case that the German one governs."""

    english: str
    german: str
    case: str


@dataclass(frozen=True)
class Verb:
    """A verb with its frame (the constituents that it takes) and the kinds of nouns in them."""

    frame: str
    subjects: Tuple[str, ...]
    objects: Tuple[str, ...]
    english: EnglishVerb
    german: GermanVerb
    governs: Tuple[Preposition, ...] = ()


@dataclass(frozen=True)
class Determiner:
    """A determiner. `pattern` selects its endings and those of adjectives after it: der, dieser, ein, strong, bare."""

    english: str
    german: str
    pattern: str


@dataclass(frozen=True)
class Modal:
    """A modal verb. The English `past` is empty if the modal has none."""

    english: str
    past: str
    german: str
    negatable: bool = True


@dataclass(frozen=True)
class Adverb:
    """An adverbial without inflection. `tenses` are the tenses that an adverbial of time occurs with."""

    english: str
    german: str
    tenses: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Conjunction:
    """A subordinating conjunction or the question word of an indirect question: the German verb goes last."""

    english: str
    german: str
