"""Sample sentences."""

from dataclasses import replace
from typing import Iterator, Tuple

from fairseq_capsule_lab.corpora.dice import Dice
from fairseq_capsule_lab.corpora.english_german import english, german
from fairseq_capsule_lab.corpora.english_german.clauses import ClauseSampler
from fairseq_capsule_lab.corpora.english_german.lexicon.function_words import CONJUNCTIONS, QUESTION_ADVERBS
from fairseq_capsule_lab.corpora.english_german.lexicon.verbs import DATIVE, INTRANSITIVE, MOTION, TRANSITIVE
from fairseq_capsule_lab.corpora.english_german.syntax import (
    Clause,
    NounPhrase,
    Question,
    QuestionPronoun,
    Sentence,
    Statement,
    Subordinate,
)

SHORTEST, LONGEST = 4, 22  # words of the English sentence
_ASKED_ABOUT = (INTRANSITIVE, MOTION, TRANSITIVE, DATIVE)  # how, where, when and why suit these frames
_TYPES = {"statement": 60, "before": 8, "after": 10, "purpose": 4, "joined": 5, "question": 13}


class SentenceSampler:
    """Draws sentences of all types."""

    def __init__(self, seed: int):
        self.dice = Dice(seed)
        self.clauses = ClauseSampler(self.dice)

    def sentence(self) -> Sentence:
        """A statement or a question."""
        kind = self.dice.weigh(_TYPES)
        if kind == "statement":
            return Statement(self.clauses.main())
        return self._question() if kind == "question" else self._complex(kind)

    def _complex(self, kind: str) -> Statement:
        clause = self.clauses.light()
        if kind == "joined":
            return Statement(clause, joined=(self.dice.choose(("and", "but")), self.clauses.light()))
        if kind == "purpose":
            return Statement(self.clauses.simple(self.dice.choose((TRANSITIVE, DATIVE))), after=self.clauses.purpose())
        return Statement(clause, **{kind: Subordinate(self.dice.choose(CONJUNCTIONS), self.clauses.light())})

    def _question(self) -> Question:
        kind = self.dice.choose(("plain", "adverb", "subject", "object"))
        if kind == "adverb":
            return self._adverb_question(self.clauses.simple(self.dice.choose(_ASKED_ABOUT)))
        clause = self.clauses.light()
        if kind == "object" and isinstance(clause.object, NounPhrase):
            return Question(replace(clause, object=_asked_for(clause.object), negated=False))
        if kind == "subject" and isinstance(clause.subject, NounPhrase):
            return Question(replace(clause, subject=_asked_for(clause.subject)))
        return Question(clause)

    def _adverb_question(self, clause: Clause) -> Question:
        return Question(replace(clause, question=self.dice.choose(QUESTION_ADVERBS), negated=False))


def _asked_for(phrase: NounPhrase) -> QuestionPronoun:
    return QuestionPronoun("who" if phrase.noun.kind == "person" else "what")


def sentence_pairs(seed: int) -> Iterator[Tuple[str, str]]:
    """An infinite sequence of (English, German) sentences. A seed gives the same pairs on every machine."""
    sampler = SentenceSampler(seed)
    while True:
        sentence = sampler.sentence()
        source = english.realise(sentence)
        if SHORTEST <= len(source.split()) <= LONGEST:
            yield source, german.realise(sentence)
