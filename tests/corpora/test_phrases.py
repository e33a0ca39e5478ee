"""Agreement, case, relative clauses and word formation, compared with translations by hand."""

from dataclasses import replace

import pytest

from fairseq_capsule_lab.corpora.english_german import derivation, german
from fairseq_capsule_lab.corpora.english_german.lexicon import function_words as words
from fairseq_capsule_lab.corpora.english_german.syntax import (
    PLURAL,
    Clause,
    Inflection,
    Name,
    NounPhrase,
    Pair,
    Predicate,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    Statement,
)
from fairseq_capsule_lab.corpora.english_german.vocabulary import LINKING
from tests.corpora.words import SEES, TODAY, adjective, check, noun, np, nps, only, pp, verb

PERFECT = Inflection(perfect=True)
FUTURE = Inflection(modal=words.WILL)


@pytest.mark.parametrize(
    "subject, expected_english, expected_german",
    [
        ("the old man", "The old man sleeps.", "Der alte Mann schläft."),
        ("a old man", "An old man sleeps.", "Ein alter Mann schläft."),
        ("no old man", "No old man sleeps.", "Kein alter Mann schläft."),
        ("this old woman", "This old woman sleeps.", "Diese alte Frau schläft."),
        ("my old horse", "My old horse sleeps.", "Mein altes Pferd schläft."),
        ("every old horse", "Every old horse sleeps.", "Jedes alte Pferd schläft."),
    ],
)
def test_words_agree_in_the_nominative(subject, expected_english, expected_german):
    check(Clause(verb("sleep"), np(subject)), expected_english, expected_german)


@pytest.mark.parametrize(
    "phrase, expected",
    [
        (np("the old man"), "den alten Mann"),
        (np("a old man"), "einen alten Mann"),
        (np("her old horse"), "ihr altes Pferd"),
        (np("the tired boy"), "den müden Jungen"),
        (nps("the old man"), "die alten Männer"),
        (nps("some old man"), "einige alte Männer"),
        (nps("all old man"), "alle alten Männer"),
        (nps("twenty-three old man"), "dreiundzwanzig alte Männer"),
        (nps("no old man"), "keine alten Männer"),
        (nps("our dark cellar"), "unsere dunklen Keller"),
        (np("the expensive cake"), "den teuren Kuchen"),
    ],
)
def test_words_agree_in_the_accusative(phrase, expected):
    assert german.realise(Statement(replace(SEES, object=phrase))) == f"Der Mann sieht {expected}."


@pytest.mark.parametrize(
    "phrase, expected",
    [
        (np("the old man"), "dem alten Mann"),
        (np("a old woman"), "einer alten Frau"),
        (np("your old horse"), "deinem alten Pferd"),
        (np("this tired student"), "diesem müden Studenten"),
        (nps("the old man"), "den alten Männern"),
        (nps("many old woman"), "vielen alten Frauen"),
        (nps("two old horse"), "zwei alten Pferden"),
    ],
)
def test_words_agree_in_the_dative(phrase, expected):
    assert german.realise(Statement(Clause(verb("help"), Pronoun("we"), object=phrase))) == f"Wir helfen {expected}."


@pytest.mark.parametrize(
    "owner, expected_english, expected_german",
    [
        (np("the old man"), "the door of the old man", "die Tür des alten Mannes"),
        (np("my sister"), "the door of my sister", "die Tür meiner Schwester"),
        (np("a tired boy"), "the door of a tired boy", "die Tür eines müden Jungen"),
        (nps("the child"), "the door of the children", "die Tür der Kinder"),
        (np("this castle"), "the door of this castle", "die Tür dieses Schlosses"),
    ],
)
def test_owners_are_in_the_genitive(owner, expected_english, expected_german):
    clause = Clause(verb("see"), Pronoun("we"), object=np("the door", owner=owner))
    check(clause, f"We see {expected_english}.", f"Wir sehen {expected_german}.")


def test_names_are_owners_without_an_article():
    annas = words.Determiner("Anna's", "Annas", "bare")
    phrase = NounPhrase(annas, noun("dog"), adjectives=(adjective("big"),))
    check(Clause(verb("see"), Pronoun("we"), object=phrase), "We see Anna's big dog.", "Wir sehen Annas großen Hund.")


@pytest.mark.parametrize(
    "subject, expected_english, expected_german",
    [
        (Pronoun("I"), "I sleep.", "Ich schlafe."),
        (Pronoun("you"), "You sleep.", "Du schläfst."),
        (Pronoun("she"), "She sleeps.", "Sie schläft."),
        (Pronoun("they"), "They sleep.", "Sie schlafen."),
        (nps("the dog"), "The dogs sleep.", "Die Hunde schlafen."),
        (Pair(Name("Anna"), np("the dog")), "Anna and the dog sleep.", "Anna und der Hund schlafen."),
    ],
)
def test_the_verb_agrees_with_its_subject(subject, expected_english, expected_german):
    check(Clause(verb("sleep"), subject), expected_english, expected_german)


@pytest.mark.parametrize(
    "preposition, phrase, expected_english, expected_german",
    [
        ("into", np("the garden"), "into the garden", "in den Garten"),
        ("into", np("the house"), "into the house", "ins Haus"),
        ("to", np("the school"), "to the school", "zur Schule"),
        ("to", np("this school"), "to this school", "zu dieser Schule"),
        ("out of", nps("the house"), "out of the houses", "aus den Häusern"),
    ],
)
def test_motion_into_a_place_takes_the_accusative(preposition, phrase, expected_english, expected_german):
    clause = Clause(verb("go"), Pronoun("he"), oblique=pp(preposition, phrase))
    check(clause, f"He goes {expected_english}.", f"Er geht {expected_german}.")


def test_verbs_govern_prepositions():
    waits = verb("wait")
    clause = Clause(waits, Pronoun("he"), FUTURE, oblique=PrepositionalPhrase(waits.governs[0], np("the dog")))
    check(clause, "He will wait for the dog.", "Er wird auf den Hund warten.")


def test_verbs_with_two_objects_are_translated():
    clause = Clause(verb("give"), Pronoun("we"), PERFECT, indirect=np("the child"), object=np("a book"), time=TODAY)
    check(clause, "We have given the child a book today.", "Wir haben heute dem Kind ein Buch gegeben.")
    pronoun = replace(clause, indirect=Pronoun("she"))
    check(pronoun, "We have given her a book today.", "Wir haben ihr heute ein Buch gegeben.")


def relative(phrase, clause):
    return replace(phrase, relative=clause)


def who(phrase):
    return RelativePronoun(phrase.noun, phrase.number)


def test_relative_clauses_are_between_commas_with_the_verb_last():
    man = np("the man")
    subject = relative(man, Clause(verb("sleep"), who(man)))
    check(replace(SEES, subject=subject), "The man who sleeps sees the dog.", "Der Mann, der schläft, sieht den Hund.")


@pytest.mark.parametrize(
    "phrase, name, expected_english, expected_german",
    [
        (np("the boy"), "see", "the boy whom she sees", "den Jungen, den sie sieht"),
        (np("the door"), "see", "the door that she sees", "die Tür, die sie sieht"),
        (nps("the man"), "help", "the men whom she helps", "die Männer, denen sie hilft"),
        (np("the lamp"), "turn off", "the lamp that she turns off", "die Lampe, die sie ausschaltet"),
    ],
)
def test_relative_pronouns_agree_with_their_noun(phrase, name, expected_english, expected_german):
    described = relative(phrase, Clause(verb(name), Pronoun("she"), object=who(phrase)))
    check(replace(SEES, object=described), f"The man sees {expected_english}.", f"Der Mann sieht {expected_german}.")


def test_the_relative_clause_of_an_object_follows_the_last_verb():
    dog = np("the dog")
    described = relative(dog, Clause(verb("sleep"), who(dog)))
    clause = replace(SEES, object=described, inflection=PERFECT, time=TODAY, fronted="time")
    check(
        clause,
        "Today the man has seen the dog that sleeps.",
        "Heute hat der Mann den Hund gesehen, der schläft.",
    )


def test_comparisons_are_translated():
    clause = Clause(None, np("the dog"), predicate=Predicate(adjective("bigger"), np("a cat")))
    check(clause, "The dog is bigger than a cat.", "Der Hund ist größer als eine Katze.")
    check(
        replace(SEES, object=np("the oldest dog")), "The man sees the oldest dog.", "Der Mann sieht den ältesten Hund."
    )


@pytest.mark.parametrize(
    "first, head, expected_english, expected_german",
    [
        ("kitchen", "door", "the kitchen doors", "die Küchentüren"),
        ("child", "book", "the child books", "die Kinderbücher"),
        ("translation", "office", "the translation offices", "die Übersetzungsbüros"),
        ("winter", "coat", "the winter coats", "die Wintermäntel"),
    ],
)
def test_compounds_are_one_word_in_german(first, head, expected_english, expected_german):
    modifier = only(pair for pair in LINKING[noun(head).kind] if pair[0] == first)
    phrase = NounPhrase(words.THE, derivation.compound(modifier, noun(head)), PLURAL)
    clause = Clause(verb("see"), Pronoun("we"), object=phrase)
    check(clause, f"We see {expected_english}.", f"Wir sehen {expected_german}.")


@pytest.mark.parametrize(
    "word, expected",
    [
        ("little dog", "Hündchen"),
        ("little frog", "Fröschlein"),
        ("little owl", "Eulchen"),
        ("little boat", "Bötchen"),
        ("little car", "Autochen"),
        ("painter", "Maler"),
        ("buyer", "Käufer"),
        ("collector", "Sammler"),
        ("player", "Spieler"),
        ("caller", "Anrufer"),
        ("female runner", "Läuferin"),
        ("female admirer", "Bewunderin"),
        ("translation", "Übersetzung"),
        ("collection", "Sammlung"),
        ("darkness", "Dunkelheit"),
        ("friendliness", "Freundlichkeit"),
    ],
)
def test_derived_nouns_are_translated(word, expected):
    assert noun(word).german == expected


@pytest.mark.parametrize(
    "word, expected",
    [
        ("unfriendly", "unfreundlich"),
        ("washable", "waschbar"),
        ("unusable", "unbenutzbar"),
        ("speechless", "sprachlos"),
        ("sleeping", "schlafend"),
        ("painted", "gemalt"),
        ("hidden", "versteckt"),
        ("strongest", "stärkst"),
        ("most dangerous", "gefährlichst"),
    ],
)
def test_derived_adjectives_are_translated(word, expected):
    assert adjective(word).german == expected
