"""Sample noun phrases."""

from dataclasses import replace
from typing import Sequence

from fairseq_capsule_lab.corpora.dice import Dice
from fairseq_capsule_lab.corpora.english_german import derivation, vocabulary
from fairseq_capsule_lab.corpora.english_german.lexemes import (
    DEVICE,
    PERSON,
    PLACE,
    PLURAL,
    SINGULAR,
    TEXT,
    THING,
    TOPIC,
    Adjective,
    Determiner,
    Noun,
    Preposition,
)
from fairseq_capsule_lab.corpora.english_german.lexicon.function_words import (
    BARE,
    DEMONSTRATIVES,
    NAMES,
    NO,
    NUMBERS,
    POSSESSIVES,
    QUANTIFIERS,
    THE,
    A,
)
from fairseq_capsule_lab.corpora.english_german.syntax import (
    Name,
    NounPhrase,
    Pair,
    Phrase,
    PrepositionalPhrase,
    Pronoun,
)

PRONOUNS = ("he", "she", "they", "I", "we", "you")
NAMED = tuple(Determiner(f"{name}'s", f"{name}s", "bare") for name in NAMES)
DEFINITE = frozenset((THE,) + DEMONSTRATIVES + POSSESSIVES + NAMED)

_GROUPS = {
    SINGULAR: {(THE,): 40, (A,): 24, POSSESSIVES: 14, DEMONSTRATIVES[:1]: 7, QUANTIFIERS[:1]: 4, (NO,): 3, NAMED: 8},
    PLURAL: {
        (THE,): 38, (BARE,): 8, POSSESSIVES: 14, DEMONSTRATIVES[1:]: 9, QUANTIFIERS[1:]: 13, (NO,): 3, NUMBERS: 12,
        NAMED: 3,
    },
}  # fmt: skip
_OWNED = (THING, PLACE, TEXT, DEVICE, TOPIC)


def is_definite(phrase: Phrase) -> bool:
    """Whether a clause with this phrase can be negated by `not`. `no` and indefinite phrases need kein."""
    if isinstance(phrase, Pair):
        return is_definite(phrase.left) and is_definite(phrase.right)
    return not isinstance(phrase, NounPhrase) or phrase.determiner in DEFINITE


class PhraseSampler:
    """Draws noun phrases of given kinds."""

    def __init__(self, dice: Dice):
        self.dice = dice

    def subject(self, kinds: Sequence[str]) -> Phrase:
        """A noun phrase, or for persons also a pronoun, a name or a pair."""
        if PERSON not in kinds:
            return self.noun_phrase(kinds)
        form = self.dice.weigh({"noun": 62, "pronoun": 20, "name": 13, "pair": 5})
        if form == "pronoun":
            return Pronoun(self.dice.choose(PRONOUNS))
        if form == "name":
            return Name(self.dice.choose(NAMES))
        return self._pair() if form == "pair" else self.noun_phrase(kinds)

    def object(self, kinds: Sequence[str], subject: Phrase) -> Phrase:
        """A noun phrase, or for persons also a name or a pronoun other than the subject."""
        form = self.dice.weigh({"noun": 80, "pronoun": 11, "name": 9}) if PERSON in kinds else "noun"
        if form == "pronoun":
            return Pronoun(self.dice.choose([word for word in PRONOUNS if subject != Pronoun(word)]))
        if form == "name":
            return Name(self.dice.choose([name for name in NAMES if subject != Name(name)]))
        return self.noun_phrase(kinds)

    def prepositional(self, preposition: Preposition, kinds: Sequence[str]) -> PrepositionalPhrase:
        """A preposition with a noun phrase."""
        return PrepositionalPhrase(preposition, self.noun_phrase(kinds))

    def noun_phrase(self, kinds: Sequence[str]) -> NounPhrase:
        """A determiner, optional adjectives, a noun and an optional owner."""
        noun = self.noun(self.dice.choose(kinds))
        number = SINGULAR if noun in vocabulary.QUALITIES or self.dice.chance(0.7) else PLURAL
        determiner = THE if noun in vocabulary.QUALITIES else self._determiner(number)
        phrase = NounPhrase(determiner, noun, number, self._adjectives(noun, determiner))
        if determiner == THE and noun.kind in _OWNED and self.dice.chance(0.08):
            return replace(phrase, owner=self._owner())
        return phrase

    def noun(self, kind: str) -> Noun:
        """A plain, derived or compound noun."""
        plain, derived = vocabulary.PLAIN_NOUNS[kind], vocabulary.DERIVED_NOUNS[kind]
        compounds = kind in vocabulary.LINKING
        form = self.dice.weigh({"plain": 66, "derived": 14 * bool(derived), "compound": 20 * compounds})
        if form == "derived":
            return self.dice.choose_early(derived)
        noun = self.dice.choose_early(plain)
        return self._compound(noun) if form == "compound" else noun

    def adjective(self, kind: str) -> Adjective:
        """A plain adjective."""
        return self.dice.choose_early(vocabulary.PLAIN_ADJECTIVES[kind])

    def _compound(self, head: Noun) -> Noun:
        first = self.dice.choose_early(vocabulary.LINKING[head.kind])
        return head if first[0] == head.english else derivation.compound(first, head)

    def _determiner(self, number: str) -> Determiner:
        return self.dice.choose_early(self.dice.weigh(_GROUPS[number]))

    def _adjectives(self, noun: Noun, determiner: Determiner) -> tuple:
        count = self.dice.weigh({0: 66, 1: 30, 2: 4})
        adjectives = [self.adjective(noun.kind) for _ in range(count)]
        if adjectives and self.dice.chance(0.4):
            adjectives[0] = self._derived_adjective(noun, determiner)
        return tuple(dict.fromkeys(adjectives))

    def _derived_adjective(self, noun: Noun, determiner: Determiner) -> Adjective:
        adjective = self.dice.choose_early(vocabulary.DERIVED_ADJECTIVES[noun.kind])
        if adjective in vocabulary.SUPERLATIVES and determiner not in DEFINITE:
            return self.adjective(noun.kind)
        return adjective

    def _owner(self) -> NounPhrase:
        determiner = self.dice.weigh({THE: 60, A: 20, DEMONSTRATIVES[0]: 10, POSSESSIVES[0]: 10})
        return NounPhrase(determiner, self.noun(self.dice.choose((PERSON, PLACE))))

    def _pair(self) -> Pair:
        left, right = self._simple(), self._simple()
        return Pair(left, right) if left != right else left

    def _simple(self) -> Phrase:
        if self.dice.chance(0.4):
            return Name(self.dice.choose(NAMES))
        determiner = self.dice.choose(self.dice.weigh({(THE,): 5, (A,): 2, POSSESSIVES: 3}))
        return NounPhrase(determiner, self.dice.choose_early(vocabulary.PERSONS))
