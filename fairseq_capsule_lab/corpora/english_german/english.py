"""Abstract sentence -> English."""

from typing import List, Tuple

from fairseq_capsule_lab.corpora.english_german import english_forms
from fairseq_capsule_lab.corpora.english_german.lexemes import PLURAL, SINGULAR, EnglishVerb
from fairseq_capsule_lab.corpora.english_german.lexicon.function_words import A
from fairseq_capsule_lab.corpora.english_german.syntax import (
    PAST,
    Clause,
    Infinitive,
    Name,
    NounPhrase,
    Pair,
    Phrase,
    Predicate,
    PrepositionalPhrase,
    Pronoun,
    Question,
    RelativePronoun,
    Sentence,
    Subordinate,
    opening,
)
from fairseq_capsule_lab.corpora.english_german.text import COMMA, sentence_text

_OBJECT_FORMS = {
    "I": "me", "he": "him", "she": "her", "we": "us", "they": "them", "who": "whom",
}  # fmt: skip
_DO = EnglishVerb("do", "did", "done")
_HAVE = EnglishVerb("have", "had", "had")
_BE = EnglishVerb("be", "was", "been")
# Particles that follow a pronoun: she turns it on, but she looks at it.
_ADVERBIAL_PARTICLES = frozenset(("up", "on", "off", "away", "along"))


def realise(sentence: Sentence) -> str:
    """The sentence in English."""
    if isinstance(sentence, Question):
        return sentence_text(_question(sentence.clause), "?")
    words = _clause(sentence.clause)
    if sentence.before:
        words = _subordinate(sentence.before) + [COMMA] + words
    if sentence.after:
        words += _dependent(sentence.after)
    if sentence.joined:
        conjunction, clause = sentence.joined
        words += [COMMA, conjunction] + _clause(clause)
    return sentence_text(words, ".")


# Phrases


def phrase_words(phrase: Phrase, subject: bool = False) -> List[str]:
    """The words of a noun phrase or pronoun; `subject` decides between `he` and `him`."""
    if isinstance(phrase, NounPhrase):
        return _noun_phrase(phrase)
    if isinstance(phrase, Name):
        return [phrase.text]
    if isinstance(phrase, Pair):
        return phrase_words(phrase.left, subject) + ["and"] + phrase_words(phrase.right, subject)
    if isinstance(phrase, RelativePronoun):
        return [_relative_pronoun(phrase, subject)]
    return [phrase.english if subject else _OBJECT_FORMS.get(phrase.english, phrase.english)]


def _noun_phrase(phrase: NounPhrase) -> List[str]:
    noun = phrase.noun.english_plural if phrase.number == PLURAL else phrase.noun.english
    words = [adjective.english for adjective in phrase.adjectives] + [noun]
    if phrase.determiner == A:
        words.insert(0, english_forms.indefinite_article(words[0]))
    elif phrase.determiner.english:
        words.insert(0, phrase.determiner.english)
    if phrase.owner:
        words += ["of"] + _noun_phrase(phrase.owner)
    if phrase.relative:
        words += _clause(phrase.relative)
    return words


def _relative_pronoun(pronoun: RelativePronoun, subject: bool) -> str:
    if pronoun.noun.kind != "person":
        return "that"
    return "who" if subject else "whom"


def _prepositional(phrase: PrepositionalPhrase) -> List[str]:
    return [phrase.preposition.english] + phrase_words(phrase.phrase)


def _predicate(predicate: Predicate) -> List[str]:
    than = ["than"] + phrase_words(predicate.than, subject=True) if predicate.than else []
    return [predicate.adjective.english] + than


# Verb groups


def _finite(verb: EnglishVerb, tense: str, subject: Phrase) -> str:
    person, number = subject.person, subject.number
    third = person == 3 and number == SINGULAR
    if verb == _BE:
        if tense == PAST:
            return "were" if number == PLURAL or person == 2 else "was"
        return "is" if third else "am" if number == SINGULAR and person == 1 else "are"
    if tense == PAST:
        return verb.past
    if verb == _HAVE:
        return "has" if third else "have"
    return english_forms.with_s(verb.base) if third else verb.base


def _chain(clause: Clause) -> List[Tuple[str, EnglishVerb]]:
    """The verbs from the outside in, each with the form that the verb before it requires."""
    inflection, verbs, form = clause.inflection, [], "base"
    for used, auxiliary, imposed in (
        (inflection.perfect, _HAVE, "participle"),
        (inflection.progressive, _BE, "ing"),
        (inflection.passive, _BE, "participle"),
    ):
        if used:
            verbs.append((form, auxiliary))
            form = imposed
    return verbs + [(form, clause.verb.english if clause.verb else _BE)]


def _form(form: str, verb: EnglishVerb) -> str:
    return english_forms.with_suffix(verb.base, "ing") if form == "ing" else getattr(verb, form)


def _verb_group(clause: Clause, support: bool) -> Tuple[str, List[str]]:
    """The finite verb and the other verbs. `support` requires an auxiliary (does not see; does she see)."""
    chain, modal, tense = _chain(clause), clause.inflection.modal, clause.inflection.tense
    nonfinite = [_form(*verb) for verb in chain]
    if modal and modal.english != "want":
        return (modal.past if tense == PAST else modal.english), nonfinite
    if modal:
        chain, nonfinite = [("base", EnglishVerb("want", "wanted", "wanted"))], ["want", "to"] + nonfinite
    first = chain[0][1]
    if support and first != _BE and (modal or len(chain) == 1):
        return _finite(_DO, tense, clause.subject), nonfinite
    return _finite(first, tense, clause.subject), nonfinite[1:]


# Clauses


def _predication(clause: Clause, support: bool) -> Tuple[List[str], List[str]]:
    """The finite verb, alone if it can be inverted with the subject, and the words between it and the objects."""
    finite, rest = _verb_group(clause, support)
    if not rest and clause.verb:
        return _frequency(clause) + [finite], []
    return [finite], (["not"] if clause.negated else []) + _frequency(clause) + rest


def _frequency(clause: Clause) -> List[str]:
    return [clause.frequency.english] if clause.frequency else []


def _objects(clause: Clause) -> List[str]:
    """The objects, with the verb's particle before or after them."""
    particle = [clause.verb.english.particle] if clause.verb and clause.verb.english.particle else []
    objects = [
        word
        for slot in ("indirect", "object")
        if getattr(clause, slot) and slot != opening(clause)
        for word in phrase_words(getattr(clause, slot))
    ]
    if isinstance(clause.object, Pronoun) and particle and particle[0] in _ADVERBIAL_PARTICLES:
        return objects + particle
    return particle + objects


def _remainder(clause: Clause) -> List[str]:
    """Everything after the verb group."""
    words = _objects(clause)
    if clause.predicate:
        words += _predicate(clause.predicate)
    for phrase in (clause.oblique, clause.agent):
        words += _prepositional(phrase) if phrase else []
    for slot in ("manner", "company", "place", "time"):
        if getattr(clause, slot) and clause.fronted != slot:
            words += _adverbial(getattr(clause, slot))
    return words + (_dependent(clause.complement) if clause.complement else [])


def _adverbial(adverbial) -> List[str]:
    return _prepositional(adverbial) if isinstance(adverbial, PrepositionalPhrase) else [adverbial.english]


def _clause(clause: Clause) -> List[str]:
    """A clause in the order of statements, which subordinate clauses share."""
    front = _adverbial(getattr(clause, clause.fronted)) if clause.fronted else []
    if opening(clause) not in ("", "subject"):
        front = phrase_words(getattr(clause, opening(clause)))
    finite, rest = _predication(clause, support=clause.negated)
    return front + phrase_words(clause.subject, subject=True) + finite + rest + _remainder(clause)


def _question(clause: Clause) -> List[str]:
    if opening(clause) == "subject":
        return _clause(clause)
    front = [clause.question.english] if clause.question else []
    if opening(clause):
        front = phrase_words(getattr(clause, opening(clause)))
    finite, rest = _predication(clause, support=True)
    return front + finite + phrase_words(clause.subject, subject=True) + rest + _remainder(clause)


def _subordinate(subordinate: Subordinate) -> List[str]:
    return [subordinate.conjunction.english] + _clause(subordinate.clause)


def _infinitive(infinitive: Infinitive) -> List[str]:
    clause = infinitive.clause
    verbs = _frequency(clause) + [_form(*verb) for verb in _chain(clause)]
    return (["in order"] if infinitive.purpose else []) + ["to"] + verbs + _remainder(clause)


def _dependent(dependent) -> List[str]:
    return _infinitive(dependent) if isinstance(dependent, Infinitive) else _subordinate(dependent)
