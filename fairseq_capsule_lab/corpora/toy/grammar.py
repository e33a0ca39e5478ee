"""A clause is a table of fields with words in both languages. A clause type is an order of the fields.

English       front subject finite not verbs object …   today she has not called the man
verb second   front finite middle verbs …               heute hat sie den Mann nicht angerufen
verb first    finite middle verbs …                     hat sie heute den Mann nicht angerufen: questions, after clauses
verb final    front middle verbs finite …               sie heute den Mann nicht angerufen hat: after conjunctions
"""

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fairseq_capsule_lab.corpora.toy import inflection
from fairseq_capsule_lab.corpora.toy.inflection import CASES, Adjective, Determiner, Noun, Verb

ENGLISH = (
    "front inverted subject finite not frequency verbs indirect object relative predicate oblique agent manner place "
    "time complement"
).split()
_MIDDLE = "subject pronoun comment time frequency progressive agent indirect object not manner place oblique predicate"
VERB_SECOND = f"front finite {_MIDDLE} verbs relative complement".split()
VERB_FIRST = VERB_SECOND[1:]
VERB_FINAL = f"front {_MIDDLE} verbs finite relative complement".split()

_CASES = {"subject": "nominative", "indirect": "dative", "object": "accusative"}
_CONTRACTIONS = {"in dem": "im", "von dem": "vom", "zu dem": "zum", "bei dem": "beim", "zu der": "zur", "in das": "ins"}


class Word(NamedTuple):
    """A word. It translates the words of the other language with the same link; None: it has no translation."""

    text: str
    link: Optional[object] = None


@dataclass(frozen=True)
class Words:
    """Words of both languages, each in its order."""

    english: Tuple[Word, ...] = ()
    german: Tuple[Word, ...] = ()

    def __add__(self, other: "Words") -> "Words":
        return Words(self.english + other.english, self.german + other.german)


NOTHING, COMMA = Words(), Words(german=(Word(","),))


def _link(text: str, link: object) -> Tuple[Word, ...]:
    return tuple(Word(word, link) for word in text.split())


def pair(english: str, german: str) -> Words:
    """Words that translate each other one by one. Words joined by `_` count as one: `of_course`, `natürlich`."""
    links = [(first, second, object()) for first, second in zip(english.split(), german.split())]
    return Words(
        tuple(Word(word, link) for first, _, link in links for word in first.split("_")),
        tuple(Word(word, link) for _, second, link in links for word in second.split("_")),
    )


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, pronoun or name. `words` gives its words in a case.

    `noun` is what a relative clause describes, if there can be one. A `light` phrase is a pronoun.
    """

    words: Callable[[str], Words]
    agreement: Tuple[int, bool] = (3, False)  # person, plural
    light: bool = False
    noun: Optional[Noun] = None


def noun_phrase(word: Determiner, noun: Noun, plural: bool = False, adjectives: Sequence[Adjective] = ()) -> Phrase:
    """The old door."""

    def words(case: str) -> Words:
        gender = "plural" if plural else noun.gender
        own, ending = (endings[gender, case] for endings in inflection.PATTERNS[word.pattern])
        english = [*(adjective.english for adjective in adjectives), noun.english[plural]]
        german = [*(adjective.stem + ending for adjective in adjectives), noun.form(plural, case)]
        n = "n" if word.english == "a" and re.match("(?!us)[aeiou]", english[0]) else ""
        return pair(" ".join([word.english + n, *english]), " ".join([word.german + own, *german]))

    return Phrase(words, (3, plural), noun=noun)


def possession(phrase: Phrase, owner: Phrase) -> Phrase:
    """The old door of the house."""

    def words(case: str) -> Words:
        genitive = owner.words("genitive")
        return phrase.words(case) + Words((Word("of", genitive.german[0].link), *genitive.english), genitive.german)

    return replace(phrase, words=words, noun=None)


def coordination(left: Phrase, right: Phrase) -> Phrase:
    """Anna and the dog."""
    return Phrase(lambda case: left.words(case) + pair("and", "und") + right.words(case), (3, True))


def pronoun(english: str, german: str, person: int = 3, plural: bool = False, light: bool = True) -> Phrase:
    """A pronoun or a name: the English subject and object, the German nominative, accusative and dative."""
    first, second = english.split(), dict(zip(CASES, german.split()))
    return Phrase(lambda case: pair(first[case != "nominative"], second[case]), (person, plural), light)


def relative_pronoun(noun: Noun, plural: bool) -> Phrase:
    """Who, whom or that; der, den, denen."""
    forms = [inflection.RELATIVE["plural" if plural else noun.gender, case] for case in CASES]
    return pronoun("who whom" if noun.kind == "person" else "that that", " ".join(forms), plural=plural)


HE, SHE = pronoun("he him", "er ihn ihm"), pronoun("she her", "sie sie ihr")
I, YOU = pronoun("I me", "ich mich mir", 1), pronoun("you you", "du dich dir", 2)
WE, THEY = pronoun("we us", "wir uns uns", 1, plural=True), pronoun("they them", "sie sie ihnen", plural=True)
IT, WHO, WHAT = pronoun("it it", "es es ihm"), pronoun("who whom", "wer wen wem"), pronoun("what what", "was was was")


def prepositional(preposition: Sequence[str], phrase: Phrase) -> Words:
    """In the garden, im Garten: the preposition in both languages with the case that it governs, and what follows."""
    english, german, case = preposition
    words = phrase.words(case)
    contracted = _CONTRACTIONS.get(f"{german} {words.german[0].text}")
    if contracted and words.english[0].text == "the":
        return pair(f"{english}_the", contracted) + Words(words.english[1:], words.german[1:])
    return pair(english, german) + words


@dataclass(frozen=True)
class Clause:
    """A verb and its fields. `helpers` are the verbs before it, from the outside in: can, have, be.

    `tense` is past, progressive, or another one that its helpers express. `fields` has phrases for the subject and the
    objects, words for the others. A clause without a subject is an infinitive. `front` names the field before the verb,
    empty for the subject.
    """

    verb: Verb
    fields: Mapping[str, Any]
    tense: str = "present"
    helpers: Tuple[Verb, ...] = ()
    negated: bool = False
    question: bool = False
    front: str = ""


def realise(clause: Clause, order: Sequence[str] = VERB_SECOND) -> Words:
    """The words of a clause, in German in this order."""
    fields = defaultdict(Words, {**_phrases(clause), **_verbs(clause, final=order is VERB_FINAL)})
    english = [fields[name].english for name in _names(ENGLISH, clause.front)]
    german = [fields[name].german for name in _names(order, clause.front or "subject" * ("front" in order))]
    return Words(tuple(chain(*english)), tuple(chain(*german)))


def _names(order: Sequence[str], front: str) -> List[str]:
    return [front if name == "front" else name for name in order if name != front]


def _phrases(clause: Clause) -> Dict[str, Words]:
    """The words of all fields but the verbs. In German a pronoun goes before the adverbials."""
    fields = {**clause.fields, "not": pair("not", "nicht") if clause.negated else NOTHING}
    for name in _CASES.keys() & clause.fields.keys():
        phrase = clause.fields[name]
        words = phrase.words("dative" if name == "object" and clause.verb.frame == "dative" else _CASES[name])
        if phrase.light and name not in ("subject", clause.front):
            words, fields["pronoun"] = Words(english=words.english), Words(german=words.german)
        fields[name] = words
    return fields


def _verbs(clause: Clause, final: bool) -> Dict[str, Words]:
    """The verbs of both languages, each linked with its translation."""
    first, *others = (*clause.helpers, clause.verb)
    base, subject, link = first.english[0], clause.fields.get("subject"), object()
    if not subject:
        to = Words(_link("to", link), _link(f"{first.prefix}zu{first.german[0]}", link))
        if not first.prefix:
            to = pair("to", "zu") + Words(german=_link(first.german[0], link))
        return {"finite": to, "verbs": Words(_link(f"{base} {first.particle}", link))}
    inverted, agreement = clause.question and clause.front != "subject", (clause.tense == "past", *subject.agreement)
    if clause.tense == "progressive":
        finite, main = inflection.BE.english_finite(*agreement), inflection.with_suffix(base, "ing")
    elif base in inflection.HELPERS:
        finite, main = first.english_finite(*agreement), ""
    elif clause.negated or inverted:
        finite, main = inflection.DO.english_finite(*agreement), base
    else:
        finite, main = "", first.english_finite(*agreement)
    english, german = _link(f"{main} {first.particle}", link), _link("" if final else first.prefix, link)
    for before, verb in zip((first, *others), others):
        form, own = -1 if before.frame in ("perfect", "passive") else 0, object()
        english += _link(f"{verb.english[form]} {verb.particle}", own)
        german = _link(verb.prefix + verb.german[form], own) + german
    end = (first.prefix if final else "") + first.german_finite(*agreement)
    return {
        "inverted": Words(_link(finite if inverted else "", link)),
        "finite": Words(_link("" if inverted else finite, link), _link(end, link)),
        "verbs": Words(english, german),
        "progressive": Words(german=_link("gerade" if clause.tense == "progressive" else "", link)),
    }


def embed(opening: Words, clause: Clause) -> Words:
    """A subordinate or relative clause or an infinitive, in German between commas."""
    return COMMA + opening + realise(clause, VERB_FINAL) + COMMA


def finish(words: Words, mark: str) -> Words:
    """A sentence: no commas that are repeated or at an end, a capital letter, and the final mark."""
    end, sides = object(), []
    for side in (words.english, words.german):
        texts = [word.text for word in side] + [","]
        kept = [word for word, *both in zip(side, texts, texts[1:]) if both != [",", ","]]
        first, *others = kept[1:] if kept[0].text == "," else kept
        sides.append((Word(first.text[0].upper() + first.text[1:], first.link), *others, Word(mark, end)))
    return Words(*sides)


def text(words: Iterable[Word]) -> str:
    """A sentence as it is written: commas, marks and the English genitive follow their words without a blank."""
    return re.sub(" ([,.?]|'s )", r"\1", " ".join(word.text for word in words))


def alignment(words: Words) -> str:
    """The links as `0-0 1-2`: source and target word of the tokenised text, counted from 0."""
    links = [word.link for word in words.german]
    return " ".join(
        f"{i}-{j}" for i, word in enumerate(words.english) for j, link in enumerate(links) if link and link is word.link
    )
