"""Every clause type and order of fields, compared with translations by hand."""

from dataclasses import replace

import pytest

from fairseq_capsule_lab.corpora.toy import grammar
from fairseq_capsule_lab.corpora.toy.grammar import (
    HE,
    SHE,
    VERB_FIRST,
    WE,
    WHAT,
    WHO,
    I,
    embed,
    finish,
    pair,
    realise,
)
from tests.corpora.words import (
    BE,
    PASSIVE,
    PERFECT,
    WILL,
    adjective,
    check,
    clause,
    np,
    nps,
    pp,
    question,
    statement,
    subordinate,
    translations,
    verb,
    with_fields,
)

SEES = clause("see", np("the man"), object=np("the dog"))
CALLS = clause("call", np("the woman"), object=np("the dog"))
SLEEPS = clause("sleep", np("the child"))
TODAY, YESTERDAY = pair("today", "heute"), pair("yesterday", "gestern")
IN_GARDEN = pp("in", np("the garden"))


def with_helpers(old, *helpers, **options):
    return replace(old, helpers=helpers, **options)


@pytest.mark.parametrize(
    "helpers, tense, english, german",
    [
        ([], "present", "The woman calls the dog.", "Die Frau ruft den Hund an."),
        ([], "past", "The woman called the dog.", "Die Frau rief den Hund an."),
        ([], "progressive", "The woman is calling the dog.", "Die Frau ruft gerade den Hund an."),
        ([PERFECT["haben"]], "perfect", "The woman has called the dog.", "Die Frau hat den Hund angerufen."),
        ([WILL], "future", "The woman will call the dog.", "Die Frau wird den Hund anrufen."),
        ([verb("must")], "future", "The woman must call the dog.", "Die Frau muss den Hund anrufen."),
        ([verb("want to")], "past", "The woman wanted to call the dog.", "Die Frau wollte den Hund anrufen."),
    ],
)
def test_tenses_put_participle_infinitive_and_prefix_last(helpers, tense, english, german):
    check(with_helpers(CALLS, *helpers, tense=tense), english, german)


@pytest.mark.parametrize(
    "front, words, english, german",
    [
        ("time", YESTERDAY, "Yesterday the man saw the dog.", "Gestern sah der Mann den Hund."),
        ("place", IN_GARDEN, "In the garden the man saw the dog.", "Im Garten sah der Mann den Hund."),
        (
            "comment",
            pair("of_course", "natürlich"),
            "Of course the man saw the dog.",
            "Natürlich sah der Mann den Hund.",
        ),
    ],
)
def test_the_verb_is_second_after_an_adverbial_in_front(front, words, english, german):
    check(replace(with_fields(SEES, **{front: words}), tense="past", front=front), english, german)


def test_german_puts_time_before_the_object_and_place_after_it():
    words = with_fields(SEES, time=TODAY, place=IN_GARDEN)
    check(words, "The man sees the dog in the garden today.", "Der Mann sieht heute den Hund im Garten.")


@pytest.mark.parametrize(
    "inner, english, german",
    [
        (SEES, "the man sees the dog", "der Mann den Hund sieht"),
        (CALLS, "the woman calls the dog", "die Frau den Hund anruft"),
        (with_helpers(SEES, PERFECT["haben"]), "the man has seen the dog", "der Mann den Hund gesehen hat"),
        (with_helpers(SEES, verb("must")), "the man must see the dog", "der Mann den Hund sehen muss"),
    ],
)
def test_the_verb_is_last_in_subordinate_clauses(inner, english, german):
    words = realise(SLEEPS) + subordinate(("because", "weil"), inner)
    check(finish(words, "."), f"The child sleeps because {english}.", f"Das Kind schläft, weil {german}.")
    says = with_fields(clause("say", HE), complement=subordinate(("that", "dass"), inner))
    check(says, f"He says that {english}.", f"Er sagt, dass {german}.")


def test_the_verb_is_first_after_a_subordinate_clause():
    words = subordinate(("because", "weil"), SLEEPS) + pair(",", ",") + realise(CALLS, VERB_FIRST)
    english, german = (
        "Because the child sleeps, the woman calls the dog.",
        "Weil das Kind schläft, ruft die Frau den Hund an.",
    )
    check(finish(words, "."), english, german)


@pytest.mark.parametrize(
    "asked, english, german",
    [
        (CALLS, "Does the woman call the dog?", "Ruft die Frau den Hund an?"),
        (with_helpers(SEES, PERFECT["haben"]), "Has the man seen the dog?", "Hat der Mann den Hund gesehen?"),
        (replace(SEES, tense="progressive"), "Is the man seeing the dog?", "Sieht der Mann gerade den Hund?"),
        (with_fields(replace(SEES, front="object"), object=WHO), "Whom does the man see?", "Wen sieht der Mann?"),
        (with_fields(replace(SEES, front="object"), object=WHAT), "What does the man see?", "Was sieht der Mann?"),
        (with_fields(replace(SEES, front="subject"), subject=WHO), "Who sees the dog?", "Wer sieht den Hund?"),
        (
            with_fields(replace(SEES, front="question"), question=pair("why", "warum")),
            "Why does the man see the dog?",
            "Warum sieht der Mann den Hund?",
        ),
        (
            clause("help", np("the man"), object=WHO, front="object"),
            "Whom does the man help?",
            "Wem hilft der Mann?",
        ),
    ],
)
def test_questions_have_the_verb_first_or_after_the_question_word(asked, english, german):
    check(question(replace(asked, question=True)), english, german)


@pytest.mark.parametrize(
    "negated, english, german",
    [
        (SEES, "The man does not see the dog.", "Der Mann sieht den Hund nicht."),
        (with_helpers(SEES, PERFECT["haben"]), "The man has not seen the dog.", "Der Mann hat den Hund nicht gesehen."),
        (CALLS, "The woman does not call the dog.", "Die Frau ruft den Hund nicht an."),
        (
            with_fields(SEES, place=IN_GARDEN),
            "The man does not see the dog in the garden.",
            "Der Mann sieht den Hund nicht im Garten.",
        ),
        (
            with_helpers(SEES, verb("want to")),
            "The man does not want to see the dog.",
            "Der Mann will den Hund nicht sehen.",
        ),
        (
            grammar.Clause(BE, {"subject": np("the door"), "predicate": pair("big", "groß")}),
            "The door is not big.",
            "Die Tür ist nicht groß.",
        ),
    ],
)
def test_negation_is_translated(negated, english, german):
    check(replace(negated, negated=True), english, german)


@pytest.mark.parametrize(
    "helpers, tense, english, german",
    [
        ([PASSIVE], "past", "was", "wurde vom Mann geöffnet"),
        ([PERFECT["sein"], PASSIVE], "perfect", "has been", "ist vom Mann geöffnet worden"),
        ([verb("can"), PASSIVE], "future", "can be", "kann vom Mann geöffnet werden"),
    ],
)
def test_passives_are_translated(helpers, tense, english, german):
    words = clause("open", np("the door"), helpers, tense, agent=pp("by", np("the man")))
    check(words, f"The door {english} opened by the man.", f"Die Tür {german}.")


@pytest.mark.parametrize(
    "inner, english, german",
    [
        (clause("call", object=np("the dog")), "call the dog", "den Hund anzurufen"),
        (clause("buy", object=np("a boat"), time=TODAY), "buy a boat today", "heute ein Boot zu kaufen"),
    ],
)
def test_infinitives_are_last(inner, english, german):
    tries = clause("try", HE, [PERFECT["haben"]], complement=embed(grammar.NOTHING, inner))
    check(tries, f"He has tried to {english}.", f"Er hat versucht, {german}.")
    works = realise(clause("work", HE)) + subordinate(("in_order", "um"), inner)
    check(finish(works, "."), f"He works in order to {english}.", f"Er arbeitet, um {german}.")


@pytest.mark.parametrize(
    "phrase, helps, english, german",
    [
        (np("the boy"), "see", "the boy whom she sees", "den Jungen, den sie sieht"),
        (nps("the man"), "help", "the men whom she helps", "die Männer, denen sie hilft"),
        (np("the lamp"), "turn off", "the lamp that she turns off", "die Lampe, die sie ausschaltet"),
    ],
)
def test_relative_clauses_follow_their_noun_or_the_last_verb(phrase, helps, english, german):
    pronoun = grammar.relative_pronoun(phrase.noun, phrase.agreement[1])
    relative = embed(grammar.NOTHING, clause(helps, SHE, object=pronoun, front="object"))
    check(clause("see", HE, object=phrase, relative=relative), f"He sees {english}.", f"Er sieht {german}.")
    later = clause("see", HE, [PERFECT["haben"]], object=phrase, relative=relative)
    german_phrase, german_clause = german.split(",")
    check(later, f"He has seen {english}.", f"Er hat {german_phrase} gesehen,{german_clause}.")
    subject = replace(np("the man"), words=lambda case: np("the man").words(case) + relative)
    assert grammar.text(statement(clause("sleep", subject)).german) == f"Der Mann,{german_clause}, schläft."


def test_verbs_with_two_objects_are_translated():
    words = clause("give", WE, [PERFECT["haben"]], indirect=np("the child"), object=np("a book"), time=TODAY)
    check(words, "We have given the child a book today.", "Wir haben heute dem Kind ein Buch gegeben.")
    pronoun = with_fields(words, indirect=SHE)
    check(pronoun, "We have given her a book today.", "Wir haben ihr heute ein Buch gegeben.")


@pytest.mark.parametrize(
    "preposition, phrase, english, german",
    [
        ("into", np("the house"), "into the house", "ins Haus"),
        ("to", np("the school"), "to the school", "zur Schule"),
        ("to", np("this school"), "to this school", "zu dieser Schule"),
        ("out_of", nps("the house"), "out of the houses", "aus den Häusern"),
    ],
)
def test_prepositions_govern_a_case_and_contract(preposition, phrase, english, german):
    check(clause("go", HE, oblique=pp(preposition, phrase)), f"He goes {english}.", f"Er geht {german}.")


@pytest.mark.parametrize(
    "words, expected",
    [
        (CALLS, "The:Die  woman:Frau  calls:ruft an  the:den  dog:Hund"),
        (with_fields(SLEEPS, place=IN_GARDEN), "The:Das  child:Kind  sleeps:schläft  in:im  the:im  garden:Garten"),
        (
            clause("see", I, object=np("Anna_'s old kitchen_door")),
            "I:Ich  see:sehe  Anna:Annas  's:Annas  old:alte  kitchen:Küchentür  door:Küchentür",
        ),
        (replace(SEES, negated=True), "The:Der  man:Mann  does:sieht  not:nicht  see:sieht  the:den  dog:Hund"),
        (
            clause("try", HE, complement=embed(grammar.NOTHING, clause("sleep"))),
            "He:Er  tries:versucht  to:zu  sleep:schlafen",
        ),
        (
            clause("open", np("the door"), [PERFECT["sein"], PASSIVE], "perfect"),
            "The:Die  door:Tür  has:ist  been:worden  opened:geöffnet",
        ),
        (
            clause("see", HE, object=grammar.possession(np("the door"), np("the house"))),
            "He:Er  sees:sieht  the:die  door:Tür  of:des  the:des  house:Hauses",
        ),
    ],
)
def test_links_join_words_and_their_translations(words, expected):
    linked = [f"{english}:{german}" for english, german in translations(statement(words))]
    assert linked == [*expected.split("  "), ".:."]


def test_the_alignment_counts_from_0_and_leaves_german_commas_unlinked():
    tries = clause("try", HE, complement=embed(grammar.NOTHING, clause("call", object=np("the dog"))))
    words = statement(tries)
    assert grammar.text(words.german) == "Er versucht, den Hund anzurufen."
    assert grammar.alignment(words) == "0-0 1-1 2-5 3-5 4-3 5-4 6-6"


def test_comparisons_are_translated():
    bigger = adjective("bigger")
    than = pair(bigger.english, bigger.german) + pair("than", "als") + np("a cat").words("nominative")
    words = grammar.Clause(BE, {"subject": np("the dog"), "predicate": than})
    check(words, "The dog is bigger than a cat.", "Der Hund ist größer als eine Katze.")
