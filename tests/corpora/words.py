"""Words by their English form, and sentences of them, for translations by hand."""

from dataclasses import replace
from itertools import chain

from fairseq_capsule_lab.corpora.toy import grammar, inflection, lexicon
from fairseq_capsule_lab.corpora.toy.grammar import Clause, embed, finish, pair, realise

PERFECT = {"haben": lexicon.VERBS["perfect"][0], "sein": lexicon.VERBS["perfect"][1]}
PASSIVE, WILL = lexicon.VERBS["passive"][0], lexicon.VERBS["future"][0]
BE = lexicon.VERBS["copula"][0]


def only(candidates):
    """Return the only candidate. Equal candidates count as one."""
    distinct = set(candidates)
    assert len(distinct) == 1, distinct
    return distinct.pop()


def noun(english):
    """The noun, or a compound such as `kitchen_door`."""
    first, _, second = english.partition("_")
    if second and first not in ("female", "little"):
        german = only(german for words in lexicon.MODIFIERS.values() for word, german in words if word == first)
        return inflection.compound(first, german, noun(second))
    nouns = chain(*lexicon.NOUNS.values(), *lexicon.DERIVED_NOUNS.values())
    return only(word for word in nouns if word.english[0] == english)


def adjective(english):
    return only(word for words in lexicon.ADJECTIVES.values() for word in words if word.english == english)


def determiner(english):
    return only(word for words in lexicon.DETERMINERS.values() for word in words if word.english == english)


def verb(english, frame=None):
    base, _, particle = english.partition(" ")
    verbs = chain(*(verbs for name, verbs in lexicon.VERBS.items() if frame in (None, name)))
    return only(verb for verb in verbs if (verb.english[0], verb.particle) == (base, particle))


def np(text, plural=False):
    """A noun phrase such as `np("the old kitchen")`. Write `a` also for `an`, and `-` for no determiner."""
    first, *adjectives, head = text.split()
    words = [adjective(word) for word in adjectives]
    return grammar.noun_phrase(determiner(first.strip("-")), noun(head), plural, words)


def nps(text):
    """The plural: `nps("the old kitchen")` is "the old kitchens"."""
    return np(text, plural=True)


def pp(english, phrase):
    """A prepositional phrase. No verb governs its preposition."""
    prepositions = [("by", "von", "dative"), *chain(*lexicon.PREPOSITIONS.values())]
    return grammar.prepositional(only(words for words in prepositions if words[0] == english), phrase)


def clause(name, subject=None, helpers=(), tense="present", frame=None, **fields):
    options = {key: fields.pop(key) for key in ("negated", "question", "front") if key in fields}
    fields = {**({"subject": subject} if subject else {}), **fields}
    return Clause(verb(name, frame), fields, tense, tuple(helpers), **options)


def with_fields(old, **fields):
    return replace(old, fields={**old.fields, **fields})


def statement(main):
    return finish(realise(main), ".")


def question(asked):
    return finish(realise(asked, grammar.VERB_SECOND if asked.front else grammar.VERB_FIRST), "?")


def subordinate(words, inner):
    return embed(pair(*words), inner)


def check(words, english, german):
    """Check a sentence, or the statement of a clause, in both languages."""
    words = statement(words) if isinstance(words, Clause) else words
    assert (grammar.text(words.english), grammar.text(words.german)) == (english, german)


def translations(words):
    """The linked words of a sentence: English word -> German words."""
    return [
        (word.text, " ".join(other.text for other in words.german if word.link and other.link is word.link))
        for word in words.english
    ]
