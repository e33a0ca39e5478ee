"""Words by their English form, and a few clauses, for sentences written by hand."""

from fairseq_capsule_lab.corpora.english_german import english as to_english
from fairseq_capsule_lab.corpora.english_german import german as to_german
from fairseq_capsule_lab.corpora.english_german import vocabulary
from fairseq_capsule_lab.corpora.english_german.lexicon import function_words
from fairseq_capsule_lab.corpora.english_german.lexicon.verbs import VERBS
from fairseq_capsule_lab.corpora.english_german.syntax import (
    PLURAL,
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    Statement,
)


def only(candidates):
    """Return the only candidate. Equal candidates count as one."""
    found = set(candidates)
    assert len(found) == 1, found
    return found.pop()


def noun(english):
    everything = [*vocabulary.PLAIN_NOUNS.values(), *vocabulary.DERIVED_NOUNS.values(), vocabulary.QUALITIES]
    return only(word for group in everything for word in group if word.english == english)


def adjective(english):
    everything = [*vocabulary.PLAIN_ADJECTIVES.values(), *vocabulary.DERIVED_ADJECTIVES.values()]
    return only(word for group in everything for word in group if word.english == english)


def verb(english, frame=None):
    base, _, particle = english.partition(" ")
    return only(
        entry.verb
        for entry in VERBS
        if (entry.verb.english.base, entry.verb.english.particle) == (base, particle)
        and frame in (None, entry.verb.frame)
    )


def by_english(words, english):
    return only(word for word in words if word.english == english)


def np(text, **more):
    """Return a singular noun phrase, such as `np("the old kitchen")`. Write `a` also for `an`."""
    determiner, *adjectives, head = text.split()
    determiners = (
        function_words.THE,
        function_words.A,
        function_words.NO,
        *function_words.DEMONSTRATIVES,
        *function_words.QUANTIFIERS,
        *function_words.POSSESSIVES,
        *function_words.NUMBERS,
    )
    return NounPhrase(
        by_english(determiners, determiner),
        noun(head),
        adjectives=tuple(adjective(word) for word in adjectives),
        **more,
    )


def nps(text, **more):
    """Return a plural noun phrase: `nps("the old kitchen")` is "the old kitchens"."""
    return np(text, number=PLURAL, **more)


def pp(preposition, phrase):
    """Return a prepositional phrase. No verb governs its preposition."""
    everything = function_words.LOCATIONS + function_words.DIRECTIONS + function_words.COMPANY + (function_words.BY,)
    return PrepositionalPhrase(by_english(everything, preposition), phrase)


def check(sentence, expected_english, expected_german):
    """Check a sentence, or the statement of a clause, in both languages."""
    sentence = sentence if isinstance(sentence, (Statement, Question)) else Statement(sentence)
    assert to_english.realise(sentence) == expected_english
    assert to_german.realise(sentence) == expected_german


SEES = Clause(verb("see"), np("the man"), object=np("the dog"))
CALLS = Clause(verb("call"), np("the woman"), object=np("the dog"))
SLEEPS = Clause(verb("sleep"), np("the child"))
TODAY = by_english(function_words.TIMES, "today")
