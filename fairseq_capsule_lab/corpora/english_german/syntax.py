"""Abstract sentences, independent of the language. `english` and `german` realise them in words.

Every type is frozen and compares by value. Change a sentence with `dataclasses.replace`.
"""

from dataclasses import dataclass
from typing import Optional, Tuple, Union

from fairseq_capsule_lab.corpora.english_german.lexemes import (
    PLURAL,
    SINGULAR,
    Adjective,
    Adverb,
    Conjunction,
    Determiner,
    Modal,
    Noun,
    Preposition,
    Verb,
)

PRESENT, PAST = "present", "past"


@dataclass(frozen=True)
class NounPhrase:
    """The old door of the house that the man sees: determiner, adjectives, noun, owner in the genitive, relative."""

    determiner: Determiner
    noun: Noun
    number: str = SINGULAR
    adjectives: Tuple[Adjective, ...] = ()
    owner: Optional["NounPhrase"] = None
    relative: Optional["Clause"] = None
    person = 3


@dataclass(frozen=True)
class Name:
    """A person's name."""

    text: str
    number = SINGULAR
    person = 3


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun, named by its English subject form. `it` is the pronoun of weather verbs."""

    english: str

    @property
    def person(self) -> int:
        """1, 2 or 3."""
        return {"I": 1, "we": 1, "you": 2}.get(self.english, 3)

    @property
    def number(self) -> str:
        """The grammatical number. `you` is du: one person."""
        return PLURAL if self.english in ("we", "they") else SINGULAR


@dataclass(frozen=True)
class Pair:
    """Two phrases joined by `and`."""

    left: "Phrase"
    right: "Phrase"
    number = PLURAL
    person = 3


@dataclass(frozen=True)
class RelativePronoun:
    """The first word of a relative clause. It agrees with the noun that the clause describes."""

    noun: Noun
    number: str
    person = 3


@dataclass(frozen=True)
class QuestionPronoun:
    """Who or what."""

    english: str
    number = SINGULAR
    person = 3


@dataclass(frozen=True)
class Unspoken:
    """The subject of an infinitive."""

    number = SINGULAR
    person = 3


Phrase = Union[NounPhrase, Name, Pronoun, Pair, RelativePronoun, QuestionPronoun, Unspoken]


@dataclass(frozen=True)
class PrepositionalPhrase:
    """In the garden."""

    preposition: Preposition
    phrase: Phrase


@dataclass(frozen=True)
class Inflection:
    """The verb group: the tense of the finite verb, then modal, perfect and so on, from the outside in."""

    tense: str = PRESENT
    modal: Optional[Modal] = None
    perfect: bool = False
    progressive: bool = False
    passive: bool = False


@dataclass(frozen=True)
class Predicate:
    """The complement of `to be`: hungry; bigger than the dog."""

    adjective: Adjective
    than: Optional[Phrase] = None


@dataclass(frozen=True)
class Clause:
    """A verb (None: `to be`) with its constituents. `fronted` names the fronted adverbial, if any."""

    verb: Optional[Verb]
    subject: Phrase
    inflection: Inflection = Inflection()
    negated: bool = False
    indirect: Optional[Phrase] = None
    object: Optional[Phrase] = None
    oblique: Optional[PrepositionalPhrase] = None
    predicate: Optional[Predicate] = None
    agent: Optional[PrepositionalPhrase] = None
    frequency: Optional[Adverb] = None
    manner: Optional[Adverb] = None
    company: Optional[PrepositionalPhrase] = None
    place: Optional[PrepositionalPhrase] = None
    time: Optional[Adverb] = None
    comment: Optional[Adverb] = None
    question: Optional[Adverb] = None
    complement: Union["Subordinate", "Infinitive", None] = None
    fronted: str = ""


def opening(clause: Clause) -> str:
    """The slot of the relative or question pronoun, which comes first in the clause; empty without one."""
    pronouns = (RelativePronoun, QuestionPronoun)
    return next((slot for slot in ("subject", "indirect", "object") if isinstance(getattr(clause, slot), pronouns)), "")


@dataclass(frozen=True)
class Subordinate:
    """Because the man sleeps; that she comes; why it rains."""

    conjunction: Conjunction
    clause: Clause


@dataclass(frozen=True)
class Infinitive:
    """To open the door; with `purpose`, in order to open it."""

    clause: Clause
    purpose: bool = False


@dataclass(frozen=True)
class Statement:
    """A main clause, optionally with a subordinate clause before or after it, or with another main clause after it."""

    clause: Clause
    before: Optional[Subordinate] = None
    after: Union[Subordinate, Infinitive, None] = None
    joined: Optional[Tuple[str, Clause]] = None


@dataclass(frozen=True)
class Question:
    """A question, with or without a question word."""

    clause: Clause


Sentence = Union[Statement, Question]
