"""Abstract sentence -> German, by topological fields.

A German clause has a front field, a bracket of verbs around a middle field, and a field after the bracket:

    front      left     middle                  right            after
    Heute      hat      der Mann den Hund       gesehen          , der schläft
               weil     der Mann den Hund       gesehen hat      , der schläft

The middle field has one fixed order. The three clause types differ in the place of the finite verb.
"""

from typing import Dict, List, Optional, Tuple

from fairseq_capsule_lab.corpora.english_german import inflection
from fairseq_capsule_lab.corpora.english_german.lexemes import GermanVerb
from fairseq_capsule_lab.corpora.english_german.lexicon.verbs import DATIVE
from fairseq_capsule_lab.corpora.english_german.syntax import (
    Clause,
    Infinitive,
    Name,
    NounPhrase,
    Pair,
    Phrase,
    PrepositionalPhrase,
    Pronoun,
    Question,
    RelativePronoun,
    Sentence,
    Subordinate,
    Unspoken,
    opening,
)
from fairseq_capsule_lab.corpora.english_german.text import COMMA, sentence_text

_CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("von", "dem"): "vom", ("zu", "dem"): "zum", ("bei", "dem"): "beim",
    ("zu", "der"): "zur", ("in", "das"): "ins", ("an", "das"): "ans",
}  # fmt: skip
_JOINING = {"and": ["und"], "but": [COMMA, "aber"]}
_SEIN = GermanVerb("", "sein", "ist", "war", "gewesen", "sein")

Fields = Dict[str, List[str]]


def realise(sentence: Sentence) -> str:
    """The sentence in German."""
    if isinstance(sentence, Question):
        return sentence_text(_question(sentence.clause), "?")
    if sentence.before:
        words = _subordinate(sentence.before) + [COMMA] + _verb_first(sentence.clause)
    else:
        words = _verb_second(sentence.clause)
    if sentence.after:
        words += _dependent(sentence.after)
    if sentence.joined:
        conjunction, clause = sentence.joined
        words += _JOINING[conjunction] + _verb_second(clause)
    return sentence_text(words, ".")


# Phrases


def phrase_words(phrase: Phrase, case: str) -> List[str]:
    """The words of a noun phrase or pronoun without its relative clause."""
    if isinstance(phrase, NounPhrase):
        return _noun_phrase(phrase, case)
    if isinstance(phrase, Name):
        return [phrase.text]
    if isinstance(phrase, Pair):
        return phrase_words(phrase.left, case) + ["und"] + phrase_words(phrase.right, case)
    if isinstance(phrase, RelativePronoun):
        return [inflection.relative_pronoun(phrase.noun, phrase.number, case)]
    return [inflection.PRONOUNS[phrase.english][case]]


def _noun_phrase(phrase: NounPhrase, case: str) -> List[str]:
    agreement = (phrase.determiner, phrase.noun, phrase.number, case)
    ending = inflection.adjective_ending(*agreement)
    words = [inflection.determiner(*agreement)] if phrase.determiner.german else []
    words += [adjective.stem + ending for adjective in phrase.adjectives]
    words.append(inflection.noun_form(phrase.noun, phrase.number, case))
    return words + (_noun_phrase(phrase.owner, "genitive") if phrase.owner else [])


def _relative(phrase: Optional[Phrase]) -> List[str]:
    """The relative clause of a phrase, between commas."""
    clause = getattr(phrase, "relative", None)
    return [COMMA] + _verb_final(clause) + [COMMA] if clause else []


def _prepositional(phrase: PrepositionalPhrase) -> List[str]:
    preposition, words = phrase.preposition.german, phrase_words(phrase.phrase, phrase.preposition.case)
    definite = isinstance(phrase.phrase, NounPhrase) and phrase.phrase.determiner.pattern == "der"
    contraction = _CONTRACTIONS.get((preposition, words[0])) if definite else None
    return [contraction] + words[1:] if contraction else [preposition] + words


def _adverbial(adverbial) -> List[str]:
    return _prepositional(adverbial) if isinstance(adverbial, PrepositionalPhrase) else [adverbial.german]


# Verb groups


def _chain(clause: Clause) -> List[Tuple[str, str, str]]:
    """The verbs from the outside in: (infinitive, participle, auxiliary of its perfect)."""
    group, verb = clause.inflection, _verb(clause)
    lexical = (verb.prefix + verb.infinitive, verb.prefix + verb.participle, verb.auxiliary)
    passive = [("werden", "worden", "sein")] if group.passive else []
    perfect = [((passive or [lexical])[0][2], "", "")] if group.perfect else []
    modal = [(group.modal.german, "", "")] if group.modal else []
    return modal + perfect + passive + [lexical]


def _verb(clause: Clause) -> GermanVerb:
    return clause.verb.german if clause.verb else _SEIN


def _nonfinite(clause: Clause) -> List[str]:
    """The verbs after the finite verb, innermost first: gesehen worden; geöffnet werden."""
    group, chain = clause.inflection, _chain(clause)
    takes_participle = [False] * bool(group.modal) + [True] * group.perfect + [True] * group.passive
    return [verb[1] if participle else verb[0] for participle, verb in zip(takes_participle, chain[1:])][::-1]


def _finite(clause: Clause) -> Tuple[str, str]:
    """The finite verb and its separable prefix."""
    group, subject = clause.inflection, clause.subject
    agreement = (group.tense, subject.person, subject.number)
    if group.modal or group.perfect or group.passive:
        return inflection.auxiliary(_chain(clause)[0][0], *agreement), ""
    return inflection.finite(_verb(clause), *agreement), _verb(clause).prefix


# Clauses


def _middle(clause: Clause) -> Fields:
    """The constituents by name, in the order of the middle field."""
    case = "dative" if clause.verb and clause.verb.frame == DATIVE else "accusative"
    direct = phrase_words(clause.object, case) if clause.object else []
    indirect = phrase_words(clause.indirect, "dative") if clause.indirect else []
    pronouns = [isinstance(phrase, Pronoun) for phrase in (clause.indirect, clause.object)]
    fields = {"subject": _subject(clause)}
    fields["indirect pronoun"] = indirect if pronouns[0] else []
    fields["object pronoun"] = direct if pronouns[1] else []
    for slot in ("comment", "question", "time", "frequency"):
        fields[slot] = _adverbial(getattr(clause, slot)) if getattr(clause, slot) else []
    fields["progressive"] = ["gerade"] if clause.inflection.progressive else []
    fields["agent"] = _prepositional(clause.agent) if clause.agent else []
    fields["indirect"] = [] if pronouns[0] else indirect
    fields["object"] = [] if pronouns[1] else direct
    fields["company"] = _prepositional(clause.company) if clause.company else []
    fields["negation"] = ["nicht"] if clause.negated else []
    for slot in ("manner", "place", "oblique"):
        fields[slot] = _adverbial(getattr(clause, slot)) if getattr(clause, slot) else []
    fields["predicate"] = _predicate(clause)
    return fields


def _subject(clause: Clause) -> List[str]:
    if isinstance(clause.subject, Unspoken):
        return []
    return phrase_words(clause.subject, "nominative") + _relative(clause.subject)


def _predicate(clause: Clause) -> List[str]:
    if not clause.predicate:
        return []
    than = ["als"] + phrase_words(clause.predicate.than, "nominative") if clause.predicate.than else []
    return [clause.predicate.adjective.german] + than


def _after(clause: Clause) -> List[str]:
    """Relative clauses of objects, and dependent clauses: they follow the bracket."""
    oblique = clause.oblique.phrase if clause.oblique else None
    words = [word for phrase in (clause.indirect, clause.object, oblique) for word in _relative(phrase)]
    return words + (_dependent(clause.complement) if clause.complement else [])


def _first(clause: Clause) -> str:
    """The name of the constituent in the front field."""
    return clause.fronted or opening(clause) or ("question" if clause.question else "subject")


def _words(fields: Fields, without: str = "") -> List[str]:
    return [word for name, words in fields.items() if name != without for word in words]


def _verb_second(clause: Clause) -> List[str]:
    fields, first = _middle(clause), _first(clause)
    finite, prefix = _finite(clause)
    return fields[first] + [finite] + _words(fields, first) + _right([prefix], clause) + _after(clause)


def _verb_first(clause: Clause) -> List[str]:
    finite, prefix = _finite(clause)
    return [finite] + _words(_middle(clause)) + _right([prefix], clause) + _after(clause)


def _verb_final(clause: Clause) -> List[str]:
    fields, first = _middle(clause), _first(clause)
    finite, prefix = _finite(clause)
    return fields[first] + _words(fields, first) + _right([], clause) + [prefix + finite] + _after(clause)


def _right(prefix: List[str], clause: Clause) -> List[str]:
    return [word for word in prefix if word] + _nonfinite(clause)


def _question(clause: Clause) -> List[str]:
    return _verb_second(clause) if clause.question or opening(clause) else _verb_first(clause)


def _subordinate(subordinate: Subordinate) -> List[str]:
    return [COMMA, subordinate.conjunction.german] + _verb_final(subordinate.clause)


def _infinitive(infinitive: Infinitive) -> List[str]:
    clause = infinitive.clause
    words = _words(_middle(clause)) + [inflection.zu_infinitive(_verb(clause))]
    return [COMMA] + (["um"] if infinitive.purpose else []) + words + _after(clause)


def _dependent(dependent) -> List[str]:
    return _infinitive(dependent) if isinstance(dependent, Infinitive) else _subordinate(dependent)
