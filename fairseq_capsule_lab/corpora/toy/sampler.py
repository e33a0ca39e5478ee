"""Sample sentences: verbs with nouns of the right kinds, tenses with matching adverbs."""

from dataclasses import replace
from typing import Any, Dict, Iterator, Sequence, Tuple

from fairseq_capsule_lab.corpora.splits import Dice
from fairseq_capsule_lab.corpora.toy import grammar, inflection, lexicon
from fairseq_capsule_lab.corpora.toy.grammar import NOTHING, Clause, Phrase, Words, embed, finish, pair, realise
from fairseq_capsule_lab.corpora.toy.inflection import Noun, Verb

SHORTEST, LONGEST = 4, 22  # words of the English sentence
_SENTENCES = {"statement": 60, "before": 8, "after": 10, "purpose": 4, "joined": 5, "question": 13}
_FRAMES = {
    "intransitive": 16, "motion": 12, "transitive": 30, "dative": 8, "ditransitive": 9, "prepositional": 9,
    "copula": 9, "passive": 6, "weather": 1,
}  # fmt: skip
_INFINITIVES = {"transitive": 5, "dative": 2, "motion": 2, "ditransitive": 1}
_RELATIVES = {"intransitive": 4, "motion": 3, "transitive": 3, "copula": 2, "object": 8}
_TENSES = {"present": 34, "past": 24, "perfect": 16, "future": 7, "modal": 13, "progressive": 6}
_SUBJECTS = {"noun": 62, "pronoun": 20, "name": 13, "coordination": 5}
_OBJECTS = {"noun": 80, "pronoun": 11, "name": 9}
_PRONOUNS = (grammar.HE, grammar.SHE, grammar.THEY, grammar.I, grammar.WE, grammar.YOU)
_NAMES = [grammar.pronoun(f"{name} {name}", " ".join([name] * 3), light=False) for name, _ in lexicon.WORDS["name"]]
_THE, _A = lexicon.DETERMINERS["definite", "der", "40", "38"][0], lexicon.DETERMINERS["indefinite", "ein", "24", "0"][0]


class Sampler:
    """Draws sentences of all types."""

    def __init__(self, seed: int):
        self.dice = Dice(seed)

    def sentence(self) -> Words:
        """A statement or a question."""
        kind = self.dice.weigh(_SENTENCES)
        if kind == "question":
            clause = self._question()
            return finish(realise(clause, grammar.VERB_SECOND if clause.front else grammar.VERB_FIRST), "?")
        if kind == "statement":
            words = realise(self._main())
        elif kind == "purpose":
            words = realise(self._clause(self.dice.choose(("transitive", "dative"))))
            words += embed(pair("in_order", "um"), self._infinitive())
        elif kind == "joined":
            comma = pair(",", ",")
            joint = self.dice.choose((Words(comma.english) + pair("and", "und"), comma + pair("but", "aber")))
            words = realise(self._light()) + joint + realise(self._light())
        else:
            section = self.dice.weigh({"conjunction": 3, "conjunction same": 7})
            tense = self.dice.choose(("present", "past")) if section == "conjunction same" else ""
            subordinate, clause = embed(self._word(section), self._light(tense)), self._light(tense)
            before = subordinate + pair(",", ",") + realise(clause, grammar.VERB_FIRST)
            words = before if kind == "before" else realise(clause) + subordinate
        return finish(words, ".")

    def _question(self) -> Clause:
        front = self.dice.choose(("", "question", "subject", "object"))
        if front == "question":
            clause = self._clause(self.dice.choose(("intransitive", "transitive", "dative")), positive=True)
            return _with(replace(clause, question=True, front=front), question=self._word(front))
        clause = replace(self._light(positive=front == "object"), question=True)
        noun = getattr(clause.fields.get(front), "noun", None)
        pronoun = grammar.WHO if noun and noun.kind == "person" else grammar.WHAT
        return _with(replace(clause, front=front), **{front: pronoun}) if noun else clause

    def _main(self) -> Clause:
        """A clause that may have a fronted adverbial, a relative clause or a complement."""
        if self.dice.chance(0.2):
            frame = self.dice.weigh({"clausal": 5, "interrogative": 3, "infinitival": 4})
            word = self._word(f"complement {frame}")
            clause = self._infinitive() if frame == "infinitival" else self._light()
            clause = _with(self._clause(frame), complement=embed(word, clause))
        else:
            clause = self._adverbials(self._clause())
        # A reader would take an adverbial at the end as part of a relative clause before it.
        closed = clause.fields.keys() & {"place", "manner"}
        role = "subject" if closed else self.dice.choose(("subject", "object"))
        phrase = clause.fields.get(role)
        if phrase and phrase.noun and "complement" not in clause.fields and self.dice.chance(0.2):
            relative = embed(NOTHING, self._relative(phrase.noun, phrase.agreement[1]))
            described = replace(phrase, words=lambda case: phrase.words(case) + relative)
            clause = _with(clause, **{"relative": relative} if role == "object" else {"subject": described})
        if "time" in clause.fields and ("relative" in clause.fields or self.dice.chance(0.4)):
            return replace(clause, front="time")
        if "place" in clause.fields and self.dice.chance(0.3):
            return replace(clause, front="place")
        if self.dice.chance(0.07):
            return _with(replace(clause, front="comment"), comment=self._word("comment"))
        return clause

    def _light(self, tense: str = "", positive: bool = False) -> Clause:
        """A clause to embed in another sentence: few adverbials, no other clauses."""
        return self._adverbials(self._clause("", tense, positive), scale=0.4)

    def _infinitive(self) -> Clause:
        verb = self.dice.choose_early(lexicon.VERBS[self.dice.weigh(_INFINITIVES)])
        return self._adverbials(Clause(verb, self._constituents(verb)), scale=0.3)

    def _relative(self, noun: Noun, plural: bool) -> Clause:
        kind, pronoun = noun.kind, grammar.relative_pronoun(noun, plural)
        tense = self.dice.weigh({"present": 5, "past": 4, "perfect": 2})
        frame = self.dice.weigh(_RELATIVES if kind in ("person", "animal") else {"copula": 1, "object": 4})
        if frame == "object":
            verb = self.dice.choose_early([verb for verb in lexicon.VERBS["transitive"] if kind in verb.objects])
            fields = {"subject": self._phrase(verb.subjects, _SUBJECTS), "object": pronoun}
            return Clause(verb, fields, front=frame, **self._inflect(verb, kind, tense))
        verb = self.dice.choose_early([verb for verb in lexicon.VERBS[frame] if kind in verb.subjects])
        fields = {"subject": pronoun, **self._constituents(verb, kind)}
        return self._adverbials(Clause(verb, fields, **self._inflect(verb, kind, tense)), scale=0.3)

    def _clause(self, frame: str = "", tense: str = "", positive: bool = False) -> Clause:
        """A clause without adverbials. `not` requires definite phrases: with others German says kein."""
        frame = frame or self.dice.weigh(_FRAMES)
        passive = frame == "passive"
        verb = self.dice.choose_early(lexicon.VERBS["transitive" if passive else frame])
        kind = self.dice.choose(verb.objects if passive else verb.subjects)
        inflected = self._inflect(verb, kind, tense, passive)
        negatable = not positive and not any("positive" in helper.notes for helper in inflected["helpers"])
        negated = negatable and self.dice.chance(0.15)
        subject = grammar.IT if frame == "weather" else self._phrase((kind,), _SUBJECTS, negated)
        fields = {} if passive else self._constituents(verb, kind, subject, negated)
        if passive and self.dice.chance(0.5):
            fields["agent"] = self._prepositional([("by", "von", "dative")], ("person",), negated)
        return Clause(verb, {"subject": subject, **fields}, negated=negated, **inflected)

    def _inflect(self, verb: Verb, kind: str, tense: str = "", passive: bool = False) -> Dict[str, Any]:
        """A tense and the verbs that express it. `kind` is that of the subject: a thing can and must."""
        tense = tense or self.dice.weigh(_TENSES)
        perfect = lexicon.VERBS["perfect"][passive or "sein" in verb.notes]
        helpers = {"future": lexicon.VERBS["future"], "perfect": [perfect]}.get(tense, [])
        if tense == "modal":
            helpers = [self.dice.choose([modal for modal in lexicon.VERBS["modal"] if kind in modal.subjects])]
            tense = "past" if "past" in helpers[0].notes and self.dice.chance(0.3) else "future"
        elif tense == "progressive" and (passive or "*" in verb.notes):
            tense = "present"
        return {"tense": tense, "helpers": (*helpers, *lexicon.VERBS["passive"] * passive)}

    def _constituents(self, verb: Verb, kind: str = "", other: object = None, definite: bool = False) -> Dict[str, Any]:
        """What the verb's frame requires besides the subject, which is of this kind."""
        if verb.frame == "copula":
            compared = self.dice.chance(0.4)
            adjective = self.dice.choose_early(lexicon.ADJECTIVES[kind, "comparative" if compared else "positive"])
            than = pair("than", "als") + self._noun_phrase((kind,)).words("nominative") if compared else NOTHING
            return {"predicate": pair(adjective.english, adjective.german) + than}
        if verb.frame in ("motion", "prepositional"):
            prepositions = [verb.governs] if verb.governs else lexicon.PREPOSITIONS["direction"]
            return {"oblique": self._prepositional(prepositions, verb.objects, definite)}
        fields = {"object": self._phrase(verb.objects, _OBJECTS, definite, other)} if verb.objects else {}
        if verb.frame == "ditransitive":
            fields["indirect"] = self._phrase(("person",), _OBJECTS, definite, other)
        return fields

    def _adverbials(self, clause: Clause, scale: float = 1.0) -> Clause:
        dice, frame = self.dice, clause.verb.frame
        often = 0.14 * scale * ("subject" in clause.fields and clause.tense != "progressive" and not clause.negated)
        if dice.chance(0.38 * scale):
            clause = _with(clause, time=pair(*dice.choose(lexicon.TIMES[clause.tense])))
        elif dice.chance(often):
            clause = _with(clause, frequency=self._word("frequency"))
        if frame not in ("copula", "weather", "motion") and dice.chance(0.22 * scale):
            return _with(clause, place=self._prepositional(lexicon.PREPOSITIONS["place"], ("place",), clause.negated))
        if frame not in ("copula", "weather") and not clause.negated and dice.chance(0.16 * scale):
            return _with(clause, manner=self._word("manner"))
        return clause

    def _word(self, section: str) -> Words:
        return pair(*self.dice.choose(lexicon.WORDS[section]))

    def _phrase(self, kinds: Sequence[str], forms: Dict[str, int], definite: bool = False, other: Any = None) -> Phrase:
        """A noun phrase, or for persons also a pronoun, a name or two persons, that is not the other phrase."""
        form = self.dice.weigh(forms) if "person" in kinds else "noun"
        if form == "noun":
            return self._noun_phrase(kinds, definite)
        names = _PRONOUNS if form == "pronoun" else _NAMES
        name = self.dice.choose([name for name in names if name is not other])
        person = grammar.noun_phrase(_THE, self._noun("person"))
        return grammar.coordination(name, person) if form == "coordination" else name

    def _prepositional(self, prepositions: Sequence[Sequence[str]], kinds: Sequence[str], definite: bool) -> Words:
        return grammar.prepositional(self.dice.choose(prepositions), self._noun_phrase(kinds, definite))

    def _noun_phrase(self, kinds: Sequence[str], definite: bool = False) -> Phrase:
        """A determiner, adjectives, a noun and an owner."""
        noun = self._noun(self.dice.choose(kinds))
        plural = bool(noun.plural) and self.dice.chance(0.3)
        keys = [key for key in lexicon.DETERMINERS if key[0] == "definite" or not definite]
        key = self.dice.weigh({key: int(key[2 + plural]) for key in keys})
        determiner = self.dice.choose_early(lexicon.DETERMINERS[key]) if noun.plural else _THE
        count = self.dice.weigh({0: 66, 1: 30, 2: 4})
        adjectives = [self.dice.choose_early(lexicon.ADJECTIVES[noun.kind, "positive"]) for _ in range(count)]
        if adjectives and self.dice.chance(0.4):
            degrees = {"comparative": 3, "participle": 4, "negative": 2, "superlative": 2 * (key[0] == "definite")}
            adjectives[:1] = [self.dice.choose_early(lexicon.ADJECTIVES[noun.kind, self.dice.weigh(degrees)])]
        phrase = grammar.noun_phrase(determiner, noun, plural, tuple(dict.fromkeys(adjectives)))
        if determiner is _THE and noun.kind not in ("person", "animal", "food") and self.dice.chance(0.08):
            owner = self._noun(self.dice.choose(("person", "place")))
            return grammar.possession(phrase, grammar.noun_phrase(self.dice.choose((_THE, _A)), owner))
        return phrase

    def _noun(self, kind: str) -> Noun:
        """A plain, derived or compound noun."""
        derived, modifiers = lexicon.DERIVED_NOUNS.get(kind, []), lexicon.MODIFIERS.get(kind, [])
        form = self.dice.weigh({"plain": 66, "derived": 14 * bool(derived), "compound": 20 * bool(modifiers)})
        noun = self.dice.choose_early(derived if form == "derived" else lexicon.NOUNS[kind])
        english, german = self.dice.choose_early(modifiers) if form == "compound" else (noun.english[0], "")
        return noun if english == noun.english[0] else inflection.compound(english, german, noun)


def _with(clause: Clause, **fields: Any) -> Clause:
    return replace(clause, fields={**clause.fields, **fields})


def sentence_pairs(seed: int) -> Iterator[Tuple[str, str, str]]:
    """An infinite sequence of (English, German, alignment). A seed gives the same sentences on every machine."""
    sampler = Sampler(seed)
    while True:
        words = sampler.sentence()
        source = grammar.text(words.english)
        if SHORTEST <= len(source.split()) <= LONGEST:
            yield source, grammar.text(words.german), grammar.alignment(words)
