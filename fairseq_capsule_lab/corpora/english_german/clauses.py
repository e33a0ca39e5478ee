"""Sample clauses: a verb, its constituents and adverbials."""

from dataclasses import replace
from typing import Optional

from fairseq_capsule_lab.corpora.dice import Dice
from fairseq_capsule_lab.corpora.english_german import vocabulary
from fairseq_capsule_lab.corpora.english_german.lexemes import (
    ANIMAL,
    CLOTHING,
    FOOD,
    LIVING,
    PERSON,
    PLACE,
    TEXT,
    THING,
    Adverb,
    Verb,
)
from fairseq_capsule_lab.corpora.english_german.lexicon.function_words import (
    BY,
    COMMENTS,
    COMPANY,
    DIRECTIONS,
    FREQUENCIES,
    LOCATIONS,
    MODALS,
    THAT,
    TIMES,
    WHETHER,
    WHY,
    WILL,
)
from fairseq_capsule_lab.corpora.english_german.lexicon.verbs import (
    CLAUSAL,
    DATIVE,
    DITRANSITIVE,
    INFINITIVAL,
    INTERROGATIVE,
    INTRANSITIVE,
    MOTION,
    PREPOSITIONAL,
    STATIVE,
    TRANSITIVE,
    WEATHER,
)
from fairseq_capsule_lab.corpora.english_german.phrases import PhraseSampler, is_definite
from fairseq_capsule_lab.corpora.english_german.syntax import (
    PAST,
    PRESENT,
    Clause,
    Infinitive,
    Inflection,
    NounPhrase,
    Predicate,
    Pronoun,
    RelativePronoun,
    Subordinate,
    Unspoken,
)

COPULA, PASSIVE = "copula", "passive"
_FRAMES = {
    INTRANSITIVE: 16, MOTION: 12, TRANSITIVE: 30, DATIVE: 8, DITRANSITIVE: 9, PREPOSITIONAL: 9, COPULA: 9, PASSIVE: 6,
    WEATHER: 1,
}  # fmt: skip
_GROUPS = {"present": 34, "past": 24, "perfect": 16, "future": 7, "modal": 13, "progressive": 6}
_NOT_OF_THINGS = ("want", "should", "may")  # modals that need a subject with a will
_PLANNED_FRAMES = {TRANSITIVE: 5, DATIVE: 2, MOTION: 2, DITRANSITIVE: 1}
_COMPLEMENTED = {CLAUSAL: 5, INTERROGATIVE: 3, INFINITIVAL: 4}


class ClauseSampler:
    """Draws meaningful clauses: verbs with nouns of the right kinds, tenses with matching adverbs."""

    def __init__(self, dice: Dice):
        self.dice = dice
        self.phrases = PhraseSampler(dice)

    # Whole clauses

    def main(self) -> Clause:
        """A main clause of a statement, possibly with a fronted adverbial, a relative clause or a complement clause."""
        if self.dice.chance(0.2):
            return self._fronted(self._complemented(self.dice.weigh(_COMPLEMENTED)))
        clause = self._with_relatives(self.simple())
        return self._fronted(self._adverbials(clause))

    def light(self) -> Clause:
        """A clause to embed in another sentence: few adverbials, no embedded clauses."""
        return self._adverbials(self.simple(), scale=0.4)

    def simple(self, frame: str = "") -> Clause:
        """A clause without adverbials."""
        frame = frame or self.dice.weigh(_FRAMES)
        if frame in (COPULA, WEATHER):
            return self._copula() if frame == COPULA else self._weather()
        return self._passive() if frame == PASSIVE else self._active(frame)

    def purpose(self) -> Infinitive:
        """In order to open the door."""
        return Infinitive(self._to_be_done(self.dice.weigh({TRANSITIVE: 6, DATIVE: 2, MOTION: 2})), purpose=True)

    # Frames

    def _active(self, frame: str) -> Clause:
        verb = self.dice.choose_early(vocabulary.verbs(frame))
        clause = Clause(verb, self.phrases.subject(verb.subjects), self.inflection(verb))
        return self._negate(self._objects(clause))

    def _objects(self, clause: Clause) -> Clause:
        verb, subject = clause.verb, clause.subject
        if verb.frame == MOTION:
            direction = self.phrases.prepositional(self.dice.choose(DIRECTIONS), (PLACE,))
            return replace(clause, oblique=direction)
        if verb.frame == PREPOSITIONAL:
            return replace(clause, oblique=self.phrases.prepositional(verb.governs[0], verb.objects))
        if verb.frame == DITRANSITIVE:
            indirect = self.phrases.object((PERSON,), subject)
            return replace(clause, indirect=indirect, object=self.phrases.noun_phrase(verb.objects))
        if verb.frame in (TRANSITIVE, DATIVE):
            return replace(clause, object=self.phrases.object(verb.objects, subject))
        return clause

    def _passive(self) -> Clause:
        verb = self.dice.choose_early(vocabulary.verbs(TRANSITIVE))
        inflection = replace(self.inflection(None, things=True), passive=True, progressive=False)
        agent = self.phrases.prepositional(BY, (PERSON,)) if self.dice.chance(0.5) else None
        return self._negate(Clause(verb, self.phrases.noun_phrase(verb.objects), inflection, agent=agent))

    def _copula(self) -> Clause:
        kind = self.dice.weigh({PERSON: 4, ANIMAL: 2, THING: 2, PLACE: 2, TEXT: 1, FOOD: 1, CLOTHING: 1})
        subject = self.phrases.subject((kind,))
        inflection = replace(self.inflection(None, things=True), progressive=False)
        return self._negate(Clause(None, subject, inflection, predicate=self._predicate(kind)))

    def _predicate(self, kind: str) -> Predicate:
        if self.dice.chance(0.4):
            adjective = self.dice.choose_early(vocabulary.COMPARATIVES[kind])
            return Predicate(adjective, self.phrases.noun_phrase((kind,)))
        return Predicate(self.phrases.adjective(kind))

    def _weather(self) -> Clause:
        verb = self.dice.choose_early(vocabulary.verbs(WEATHER))
        return self._negate(Clause(verb, Pronoun("it"), self.inflection(verb, things=True)))

    def _complemented(self, frame: str) -> Clause:
        clause = self._active(frame)
        if frame == INFINITIVAL:
            return replace(clause, complement=Infinitive(self._to_be_done(self.dice.weigh(_PLANNED_FRAMES))))
        conjunction = THAT if frame == CLAUSAL else self.dice.weigh({WHETHER: 2, WHY: 1})
        return replace(clause, complement=Subordinate(conjunction, self.light()))

    def _to_be_done(self, frame: str) -> Clause:
        """A clause that becomes an infinitive."""
        clause = Clause(self.dice.choose_early(vocabulary.verbs(frame)), Unspoken())
        return self._adverbials(self._objects(clause), scale=0.3)

    # Verb groups and negation

    def inflection(self, verb: Optional[Verb], things: bool = False) -> Inflection:
        """Tense, modal and so on. `things` excludes modals that need a subject with a will."""
        group = self.dice.weigh(_GROUPS)
        if group == "modal":
            modal = self.dice.choose([modal for modal in MODALS if not (things and modal.english in _NOT_OF_THINGS)])
            return Inflection(PAST if modal.past and self.dice.chance(0.3) else PRESENT, modal)
        if group == "progressive" and (verb is None or verb.english.base in STATIVE):
            return Inflection()
        return {
            "present": Inflection(),
            "past": Inflection(PAST),
            "perfect": Inflection(perfect=True),
            "future": Inflection(modal=WILL),
            "progressive": Inflection(progressive=True),
        }[group]

    def _negate(self, clause: Clause) -> Clause:
        phrases = [clause.subject, clause.indirect, clause.object]
        phrases += [slot.phrase for slot in (clause.oblique, clause.agent) if slot]
        modal = clause.inflection.modal
        possible = all(is_definite(phrase) for phrase in phrases if phrase) and (not modal or modal.negatable)
        return replace(clause, negated=possible and self.dice.chance(0.2))

    # Adverbials

    def _adverbials(self, clause: Clause, scale: float = 1.0) -> Clause:
        """Add adverbials. A clause that ends in a relative clause takes only adverbials that can precede it."""
        dice, lexical = self.dice, clause.verb is not None
        added = {}
        if dice.chance(0.38 * scale):
            added["time"] = self._time(clause.inflection)
        elif not clause.negated and dice.chance(0.14 * scale):
            added["frequency"] = dice.choose(FREQUENCIES)
        if not ends_in_clause(clause) and lexical and clause.verb.frame != WEATHER:
            if clause.verb.frame != MOTION and dice.chance(0.22 * scale):
                added["place"] = self.phrases.prepositional(dice.choose(LOCATIONS), (PLACE,))
            elif not clause.negated and not clause.inflection.passive and dice.chance(0.16 * scale):
                added["manner"] = dice.choose_early(vocabulary.MANNERS)
            elif clause.verb.frame in (INTRANSITIVE, MOTION) and dice.chance(0.18 * scale):
                added["company"] = self.phrases.prepositional(dice.choose(COMPANY), LIVING)
        return replace(clause, **added)

    def _time(self, inflection: Inflection) -> Adverb:
        tense = inflection.tense
        if tense == PRESENT:
            marks = {"perfect": inflection.perfect, "progressive": inflection.progressive, "future": inflection.modal}
            tense = next((mark for mark, present in marks.items() if present), PRESENT)
        return self.dice.choose([adverb for adverb in TIMES if tense in adverb.tenses])

    def _fronted(self, clause: Clause) -> Clause:
        """Move an adverbial to the front. If the clause ends in another clause, English allows no other place."""
        if clause.time and (ends_in_clause(clause) or self.dice.chance(0.4)):
            return replace(clause, fronted="time")
        if clause.place and self.dice.chance(0.3):
            return replace(clause, fronted="place")
        if self.dice.chance(0.07):
            return replace(clause, comment=self.dice.choose(COMMENTS), fronted="comment")
        return clause

    # Relative clauses

    def _with_relatives(self, clause: Clause) -> Clause:
        slot = self.dice.choose(("subject", "object"))
        phrase = getattr(clause, slot)
        if isinstance(phrase, NounPhrase) and not phrase.owner and self.dice.chance(0.2):
            return replace(clause, **{slot: replace(phrase, relative=self._relative(phrase))})
        return clause

    def _relative(self, phrase: NounPhrase) -> Clause:
        kind, pronoun = phrase.noun.kind, RelativePronoun(phrase.noun, phrase.number)
        role = self.dice.weigh({"subject": 5 * (kind in LIVING), "object": 4, COPULA: 1})
        if role == COPULA:
            return Clause(None, pronoun, self._plain_tense(), predicate=Predicate(self.phrases.adjective(kind)))
        frames = {INTRANSITIVE: 4, MOTION: 3, TRANSITIVE: 3} if role == "subject" else {TRANSITIVE: 1}
        verbs = vocabulary.verbs(self.dice.weigh(frames))
        fitting = [verb for verb in verbs if kind in (verb.subjects if role == "subject" else verb.objects)]
        verb = self.dice.choose_early(fitting)
        if role == "object":
            return Clause(verb, self.phrases.subject(verb.subjects), self._plain_tense(), object=pronoun)
        return self._adverbials(self._objects(Clause(verb, pronoun, self._plain_tense())), scale=0.3)

    def _plain_tense(self) -> Inflection:
        return self.dice.weigh({Inflection(): 5, Inflection(PAST): 4, Inflection(perfect=True): 2})


def ends_in_clause(clause: Clause) -> bool:
    """Whether a reader takes an adverbial at the end as part of another clause."""
    return bool(clause.complement or getattr(clause.object, "relative", None))
