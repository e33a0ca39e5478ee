"""Productive word formation: lexemes derived from lexemes, in both languages together."""

import re
from typing import Dict, Tuple

from fairseq_capsule_lab.corpora.english_german import english_forms, german_forms
from fairseq_capsule_lab.corpora.english_german.lexemes import PERSON, TOPIC, Adjective, Adverb, Noun, Verb

_COMPARATIVES = ("comparative", "superlative")


def compound(first: Tuple[str, str], head: Noun) -> Noun:
    """Kitchen door, Küchentür: `first` is the English word and the German linking form."""
    english, german = first
    return Noun(
        kind=head.kind,
        english=f"{english} {head.english}",
        english_plural=f"{english} {head.english_plural}",
        gender=head.gender,
        german=german + head.german.lower(),
        german_plural=german + head.german_plural.lower(),
        genitive=german + head.genitive.lower(),
        oblique=german + head.oblique.lower(),
        linking=german + head.linking.lower() if head.linking else "",
    )


def diminutive(noun: Noun) -> Noun:
    """Little dog, Hündchen."""
    german = german_forms.diminutive(noun.german)
    english, plural = f"little {noun.english}", f"little {noun.english_plural}"
    return Noun(noun.kind, english, plural, "n", german, german, german + "s", german)


def agent(verb: Verb, english: str, fronted: bool) -> Noun:
    """Painter, Maler; with umlaut (`fronted`) buyer, Käufer."""
    stem = german_forms.derived_stem(verb.german)
    german = (german_forms.umlaut(stem) if fronted else stem).capitalize() + "er"
    english = english or english_forms.with_suffix(verb.english.base, "er")
    return Noun(PERSON, english, english_forms.with_s(english), "m", german, german, german + "s", german, german)


def feminine(noun: Noun) -> Noun:
    """Female painter, Malerin; female admirer, Bewunderin (with one -er-)."""
    german = re.sub("(?<!i)erer$", "er", noun.german) + "in"
    english, plural = f"female {noun.english}", f"female {noun.english_plural}"
    return Noun(noun.kind, english, plural, "f", german, german + "nen", german, german)


def nominal(verb: Verb, english: str) -> Noun:
    """Translation, Übersetzung."""
    german = german_forms.derived_stem(verb.german).capitalize() + "ung"
    plural = english_forms.with_s(english)
    return Noun(TOPIC, english, plural, "f", german, german + "en", german, german, german + "s")


def quality(adjective: Adjective) -> Noun:
    """Darkness, Dunkelheit: a quality of things, without a plural."""
    german, english = german_forms.quality_noun(adjective.german), english_forms.with_ness(adjective.english)
    return Noun(TOPIC, english, english + "es", "f", german, german + "en", german, german)


def negated(adjective: Adjective) -> Adjective:
    """Unfriendly, unfreundlich."""
    return Adjective(adjective.kinds, "un" + adjective.english, "un" + adjective.german, "un" + adjective.stem)


def able(verb: Verb) -> Adjective:
    """Washable, waschbar."""
    german = german_forms.derived_stem(verb.german) + "bar"
    return Adjective(verb.objects, english_forms.with_suffix(verb.english.base, "able"), german, german)


def degrees(adjective: Adjective, fronted: bool) -> Dict[str, Adjective]:
    """Smaller, kleiner and smallest, kleinst-."""
    forms = (getattr(english_forms, degree)(adjective.english) for degree in _COMPARATIVES)
    germans = (getattr(german_forms, degree)(adjective.german, fronted) for degree in _COMPARATIVES)
    return {
        degree: Adjective(adjective.kinds, english, german, german)
        for degree, english, german in zip(_COMPARATIVES, forms, germans)
    }


def manner(adjective: Adjective) -> Adverb:
    """Slowly, langsam."""
    return Adverb(english_forms.with_ly(adjective.english), adjective.german)


def present_participle(verb: Verb) -> Adjective:
    """The sleeping child, das schlafende Kind."""
    german = verb.german.prefix + verb.german.infinitive + "d"
    return Adjective(verb.subjects, english_forms.with_suffix(verb.english.base, "ing"), german, german)


def past_participle(verb: Verb) -> Adjective:
    """The painted door, die gemalte Tür."""
    german = verb.german.prefix + verb.german.participle
    return Adjective(verb.objects, verb.english.participle, german, german)
