"""What a word is: all that both languages need to know of it, side by side."""

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
    """A noun; `kind` says which verbs and adjectives it goes with.

    `oblique` is the accusative and dative singular, which differs from `german` in weak masculines only (der Junge, den
    Jungen); `linking` is the form that opens a compound (Küchen|tür), empty for a noun that never does.
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
    """An adjective; `stem` is what endings are added to (dunkel, dunkl-e), `kinds` the nouns that it may describe."""

    kinds: Tuple[str, ...]
    english: str
    german: str
    stem: str


@dataclass(frozen=True)
class EnglishVerb:
    """`particle` follows the verb: an adverb (turn on) or a preposition (look at)."""

    base: str
    past: str
    participle: str
    particle: str = ""


@dataclass(frozen=True)
class GermanVerb:
    """`prefix` is separable (an|rufen), and the other forms are written without it; `present` is the third person."""

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
    """A verb with its frame (which constituents it takes) and the kinds of noun that may fill them."""

    frame: str
    subjects: Tuple[str, ...]
    objects: Tuple[str, ...]
    english: EnglishVerb
    german: GermanVerb
    governs: Tuple[Preposition, ...] = ()


@dataclass(frozen=True)
class Determiner:
    """`pattern` names the endings, which decide about those of the adjectives, too: der, dieser, ein, strong, bare."""

    english: str
    german: str
    pattern: str


@dataclass(frozen=True)
class Modal:
    """A modal verb; `past` in English is empty for those that have none."""

    english: str
    past: str
    german: str
    negatable: bool = True


@dataclass(frozen=True)
class Adverb:
    """An adverbial that is not inflected; `tenses` are those it goes with, if it is one of time."""

    english: str
    german: str
    tenses: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Conjunction:
    """A subordinating conjunction or the question word of an indirect question: the German verb goes last."""

    english: str
    german: str
