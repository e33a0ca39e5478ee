"""Main and subordinate clauses, compared with translations by hand."""

from dataclasses import replace

import pytest

from fairseq_capsule_lab.corpora.english_german import german
from fairseq_capsule_lab.corpora.english_german.lexicon import function_words as words
from fairseq_capsule_lab.corpora.english_german.syntax import (
    PAST,
    Clause,
    Infinitive,
    Inflection,
    Predicate,
    Pronoun,
    Question,
    QuestionPronoun,
    Statement,
    Subordinate,
    Unspoken,
)
from tests.corpora.words import CALLS, SEES, SLEEPS, TODAY, adjective, by_english, check, np, pp, verb

PRESENT = Inflection()
PERFECT = Inflection(perfect=True)
FUTURE = Inflection(modal=words.WILL)
YESTERDAY = by_english(words.TIMES, "yesterday")
BECAUSE = by_english(words.CONJUNCTIONS, "because")


def modal(name, tense="present", **more):
    return Inflection(tense, by_english(words.MODALS, name), **more)


def with_verbs(clause, **inflection):
    return replace(clause, inflection=Inflection(**inflection))


@pytest.mark.parametrize(
    "clause, expected_english, expected_german",
    [
        (SEES, "The man sees the dog.", "Der Mann sieht den Hund."),
        (with_verbs(SEES, tense=PAST), "The man saw the dog.", "Der Mann sah den Hund."),
        (replace(SEES, inflection=PERFECT), "The man has seen the dog.", "Der Mann hat den Hund gesehen."),
        (replace(SEES, inflection=FUTURE), "The man will see the dog.", "Der Mann wird den Hund sehen."),
        (replace(SEES, inflection=modal("must")), "The man must see the dog.", "Der Mann muss den Hund sehen."),
        (
            replace(SEES, inflection=modal("can", PAST)),
            "The man could see the dog.",
            "Der Mann konnte den Hund sehen.",
        ),
        (
            replace(SEES, inflection=modal("want", PAST)),
            "The man wanted to see the dog.",
            "Der Mann wollte den Hund sehen.",
        ),
        (
            with_verbs(SLEEPS, progressive=True),
            "The child is sleeping.",
            "Das Kind schläft gerade.",
        ),
        (
            Clause(verb("arrive"), np("the child"), PERFECT),
            "The child has arrived.",
            "Das Kind ist angekommen.",
        ),
    ],
)
def test_german_tenses_put_the_participle_or_infinitive_last(clause, expected_english, expected_german):
    check(clause, expected_english, expected_german)


@pytest.mark.parametrize(
    "slot, phrase, expected_english, expected_german",
    [
        ("time", YESTERDAY, "Yesterday the man saw the dog.", "Gestern sah der Mann den Hund."),
        (
            "place",
            pp("in front of", np("the school")),
            "In front of the school the man saw the dog.",
            "Vor der Schule sah der Mann den Hund.",
        ),
        (
            "comment",
            by_english(words.COMMENTS, "therefore"),
            "Therefore the man saw the dog.",
            "Deshalb sah der Mann den Hund.",
        ),
    ],
)
def test_the_verb_is_second_after_a_fronted_adverbial(slot, phrase, expected_english, expected_german):
    clause = replace(with_verbs(SEES, tense=PAST), fronted=slot, **{slot: phrase})
    check(clause, expected_english, expected_german)


def test_german_puts_time_before_the_object_and_place_last():
    clause = replace(SEES, time=TODAY, place=pp("in", np("the garden")))
    check(clause, "The man sees the dog in the garden today.", "Der Mann sieht heute den Hund im Garten.")


@pytest.mark.parametrize(
    "clause, expected_german",
    [
        (SEES, "weil der Mann den Hund sieht"),
        (replace(SEES, inflection=PERFECT), "weil der Mann den Hund gesehen hat"),
        (replace(SEES, inflection=modal("must")), "weil der Mann den Hund sehen muss"),
        (CALLS, "weil die Frau den Hund anruft"),
        (replace(SEES, time=TODAY), "weil der Mann heute den Hund sieht"),
    ],
)
def test_the_verb_is_last_in_subordinate_clauses(clause, expected_german):
    sentence = Statement(SLEEPS, after=Subordinate(BECAUSE, clause))
    assert german.realise(sentence) == f"Das Kind schläft, {expected_german}."


def test_the_verb_follows_a_subordinate_clause_in_front():
    check(
        Statement(CALLS, before=Subordinate(BECAUSE, SLEEPS)),
        "Because the child sleeps, the woman calls the dog.",
        "Weil das Kind schläft, ruft die Frau den Hund an.",
    )


@pytest.mark.parametrize(
    "inflection, expected_english, expected_german",
    [
        (PRESENT, "The woman calls the dog.", "Die Frau ruft den Hund an."),
        (PERFECT, "The woman has called the dog.", "Die Frau hat den Hund angerufen."),
        (FUTURE, "The woman will call the dog.", "Die Frau wird den Hund anrufen."),
    ],
)
def test_separable_prefixes_are_last_or_joined(inflection, expected_english, expected_german):
    check(replace(CALLS, inflection=inflection), expected_english, expected_german)


@pytest.mark.parametrize(
    "name, phrase, expected_english, expected_german",
    [
        ("turn on", np("the lamp"), "I turn on the lamp.", "Ich schalte die Lampe ein."),
        ("pick up", Pronoun("he"), "I pick him up.", "Ich hole ihn ab."),
        ("look at", Pronoun("he"), "I look at him.", "Ich sehe ihn an."),
    ],
)
def test_phrasal_verbs_become_separable_verbs(name, phrase, expected_english, expected_german):
    check(Clause(verb(name), Pronoun("I"), object=phrase), expected_english, expected_german)


@pytest.mark.parametrize(
    "inflection, expected_english, expected_german",
    [
        (Inflection(passive=True), "The door is opened by the man.", "Die Tür wird vom Mann geöffnet."),
        (Inflection(PAST, passive=True), "The door was opened by the man.", "Die Tür wurde vom Mann geöffnet."),
        (
            Inflection(perfect=True, passive=True),
            "The door has been opened by the man.",
            "Die Tür ist vom Mann geöffnet worden.",
        ),
        (
            modal("can", passive=True),
            "The door can be opened by the man.",
            "Die Tür kann vom Mann geöffnet werden.",
        ),
    ],
)
def test_passives_are_translated(inflection, expected_english, expected_german):
    clause = Clause(verb("open"), np("the door"), inflection, agent=pp("by", np("the man")))
    check(clause, expected_english, expected_german)


@pytest.mark.parametrize(
    "clause, expected_english, expected_german",
    [
        (SEES, "The man does not see the dog.", "Der Mann sieht den Hund nicht."),
        (replace(SEES, inflection=PERFECT), "The man has not seen the dog.", "Der Mann hat den Hund nicht gesehen."),
        (CALLS, "The woman does not call the dog.", "Die Frau ruft den Hund nicht an."),
        (
            replace(SEES, place=pp("in", np("the garden"))),
            "The man does not see the dog in the garden.",
            "Der Mann sieht den Hund nicht im Garten.",
        ),
        (
            replace(SEES, inflection=modal("want")),
            "The man does not want to see the dog.",
            "Der Mann will den Hund nicht sehen.",
        ),
        (
            Clause(None, np("the door"), predicate=Predicate(adjective("big"))),
            "The door is not big.",
            "Die Tür ist nicht groß.",
        ),
    ],
)
def test_negation_is_translated(clause, expected_english, expected_german):
    check(replace(clause, negated=True), expected_english, expected_german)


@pytest.mark.parametrize(
    "clause, expected_english, expected_german",
    [
        (SEES, "Does the man see the dog?", "Sieht der Mann den Hund?"),
        (CALLS, "Does the woman call the dog?", "Ruft die Frau den Hund an?"),
        (replace(SEES, inflection=PERFECT), "Has the man seen the dog?", "Hat der Mann den Hund gesehen?"),
        (
            replace(SEES, question=by_english(words.QUESTION_ADVERBS, "why")),
            "Why does the man see the dog?",
            "Warum sieht der Mann den Hund?",
        ),
        (replace(SEES, object=QuestionPronoun("who")), "Whom does the man see?", "Wen sieht der Mann?"),
        (replace(SEES, object=QuestionPronoun("what")), "What does the man see?", "Was sieht der Mann?"),
        (replace(SEES, subject=QuestionPronoun("who")), "Who sees the dog?", "Wer sieht den Hund?"),
        (
            Clause(verb("help"), np("the man"), object=QuestionPronoun("who")),
            "Whom does the man help?",
            "Wem hilft der Mann?",
        ),
    ],
)
def test_questions_are_translated(clause, expected_english, expected_german):
    check(Question(clause), expected_english, expected_german)


def test_complement_clauses_are_translated():
    says = Clause(verb("say"), Pronoun("he"), complement=Subordinate(words.THAT, CALLS))
    check(says, "He says that the woman calls the dog.", "Er sagt, dass die Frau den Hund anruft.")
    asks = Clause(verb("ask", "interrogative"), Pronoun("he"), complement=Subordinate(words.WHETHER, SLEEPS))
    check(asks, "He asks whether the child sleeps.", "Er fragt, ob das Kind schläft.")


def test_infinitives_are_translated():
    call = Clause(verb("call"), Unspoken(), object=np("the dog"))
    tries = Clause(verb("try"), Pronoun("he"), PERFECT, complement=Infinitive(call))
    check(tries, "He has tried to call the dog.", "Er hat versucht, den Hund anzurufen.")
    works = Statement(
        Clause(verb("work"), Pronoun("he")),
        after=Infinitive(Clause(verb("buy"), Unspoken(), object=np("a boat")), purpose=True),
    )
    check(works, "He works in order to buy a boat.", "Er arbeitet, um ein Boot zu kaufen.")


def test_an_infinitive_keeps_its_adverbs():
    often = by_english(words.FREQUENCIES, "often")
    call = Clause(verb("call"), Unspoken(), object=np("the dog"), frequency=often, time=TODAY)
    tries = Clause(verb("try"), Pronoun("he"), complement=Infinitive(call))
    check(tries, "He tries to often call the dog today.", "Er versucht, heute oft den Hund anzurufen.")


def test_joined_clauses_are_translated():
    check(
        Statement(SLEEPS, joined=("but", CALLS)),
        "The child sleeps, but the woman calls the dog.",
        "Das Kind schläft, aber die Frau ruft den Hund an.",
    )
