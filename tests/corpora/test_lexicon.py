"""Every word in the tables has exactly one translation."""

import re
from collections import defaultdict
from itertools import chain

import pytest

from fairseq_capsule_lab.corpora.english_german import english_forms, german_forms, inflection, vocabulary
from fairseq_capsule_lab.corpora.english_german.lexicon import function_words as words
from fairseq_capsule_lab.corpora.english_german.lexicon import tables
from fairseq_capsule_lab.corpora.english_german.lexicon.nouns import NOUNS
from fairseq_capsule_lab.corpora.english_german.lexicon.verbs import VERBS

ALL_NOUNS = set(chain(NOUNS, vocabulary.QUALITIES, *vocabulary.DERIVED_NOUNS.values()))
ALL_ADJECTIVES = set(chain(*vocabulary.PLAIN_ADJECTIVES.values(), *vocabulary.DERIVED_ADJECTIVES.values()))


def assert_function(pairs):
    """Check that no English form has two German translations."""
    translations = defaultdict(set)
    for english, german in pairs:
        translations[english].add(german)
    assert {english: germans for english, germans in translations.items() if len(germans) > 1} == {}


def test_every_noun_has_one_translation():
    singular = [(noun.english, (noun.german, noun.gender, noun.genitive, noun.oblique)) for noun in ALL_NOUNS]
    plural = [(noun.english_plural, noun.german_plural) for noun in ALL_NOUNS]
    assert_function(singular)
    assert_function(plural)
    assert not {noun.english for noun in ALL_NOUNS} & {noun.english_plural for noun in ALL_NOUNS}


def test_every_adjective_has_one_translation():
    assert_function((adjective.english, adjective.stem) for adjective in ALL_ADJECTIVES)


def test_every_verb_has_one_translation():
    verbs = [entry.verb for entry in VERBS]
    assert_function(((verb.english, verb.governs), (verb.german, verb.governs)) for verb in verbs)
    # `they ran` and `they run` must differ, or the tense would be ambiguous.
    assert [verb.english.base for verb in verbs if verb.english.base == verb.english.past] == []


def test_every_function_word_has_one_translation():
    for group in (
        words.TIMES + words.FREQUENCIES + words.COMMENTS + vocabulary.MANNERS,
        words.LOCATIONS + words.DIRECTIONS + words.COMPANY + (words.BY,),
        words.CONJUNCTIONS + (words.THAT, words.WHETHER),
        words.QUESTION_ADVERBS,
        words.MODALS + (words.WILL,),
        words.NUMBERS + words.QUANTIFIERS + words.POSSESSIVES,
    ):
        assert_function((word.english, word.german) for word in group)


def test_every_opening_of_a_compound_has_one_translation():
    assert_function(chain(*vocabulary.LINKING.values()))


def test_german_nouns_are_capitalised_words():
    for noun in ALL_NOUNS:
        for form in (noun.german, noun.german_plural, noun.genitive, noun.oblique):
            assert re.fullmatch("[A-ZÄÖÜ][a-zäöüß]+", form), form


def test_numbers_are_from_two_to_ninety_nine_without_the_teens():
    english = [number.english for number in words.NUMBERS]
    assert len(set(english)) == len(english) == 8 + 8 + 64
    assert words.NUMBERS[-1].german == "neunundneunzig"


def test_a_misspelt_note_is_refused():
    with pytest.raises(ValueError, match="paint: unknown note 'agnet'; known: able, agent"):
        tables.notes(["paint", "malen", "agnet"], {"agent", "able"})


@pytest.mark.parametrize(
    "rule, expected",
    [
        (english_forms.with_s, {"box": "boxes", "city": "cities", "boy": "boys", "go": "goes", "knife": "knifes"}),
        (lambda word: english_forms.with_suffix(word, "ing"), {"see": "seeing", "bake": "baking", "cry": "crying"}),
        (lambda word: english_forms.with_suffix(word, "ed"), {"cry": "cried", "play": "played", "plan": "planned"}),
        (english_forms.comparative, {"big": "bigger", "happy": "happier", "famous": "more famous"}),
        (english_forms.with_ness, {"lazy": "laziness", "shy": "shyness", "dark": "darkness"}),
        (english_forms.indefinite_article, {"apple": "an", "useful": "a", "unimportant": "an", "dog": "a"}),
        (german_forms.genitive, {"Haus": "Hauses", "Hund": "Hundes", "Garten": "Gartens", "Auto": "Autos"}),
        (german_forms.dative_plural, {"Hunde": "Hunden", "Frauen": "Frauen", "Autos": "Autos"}),
        (german_forms.umlaut, {"Haus": "Häus", "Vogel": "Vögel", "Eul": "Eul", "Boot": "Böt", "Auto": "Auto"}),
        (german_forms.attributive_stem, {"dunkel": "dunkl", "teuer": "teur", "müde": "müd", "klein": "klein"}),
        (lambda word: german_forms.superlative(word, True), {"groß": "größt", "alt": "ältest", "kurz": "kürzest"}),
    ],
)
def test_spelling_rules_are_applied(rule, expected):
    assert {word: rule(word) for word in expected} == expected


@pytest.mark.parametrize(
    "english, expected",
    [
        ("see", "sehe siehst sieht sehen sah sahst sah sahen"),
        ("work", "arbeite arbeitest arbeitet arbeiten arbeitete arbeitetest arbeitete arbeiteten"),
        ("dance", "tanze tanzt tanzt tanzen tanzte tanztest tanzte tanzten"),
        ("collect", "sammle sammelst sammelt sammeln sammelte sammeltest sammelte sammelten"),
        ("play", "spiele spielst spielt spielen spielte spieltest spielte spielten"),
        ("open", "öffne öffnest öffnet öffnen öffnete öffnetest öffnete öffneten"),
        ("invite", "lade lädst lädt laden lud ludest lud luden"),
        ("know", "weiß weißt weiß wissen wusste wusstest wusste wussten"),
        ("eat", "esse isst isst essen aß aßest aß aßen"),
    ],
)
def test_verbs_are_conjugated(english, expected):
    verb = next(entry.verb.german for entry in VERBS if entry.verb.english.base == english)
    persons = ((1, "singular"), (2, "singular"), (3, "singular"), (3, "plural"))
    forms = [inflection.finite(verb, tense, *person) for tense in ("present", "past") for person in persons]
    assert " ".join(forms) == expected


@pytest.mark.parametrize(
    "english, participle, zu",
    [
        ("repair", "repariert", "zu reparieren"),
        ("describe", "beschrieben", "zu beschreiben"),
        ("prepare", "vorbereitet", "vorzubereiten"),
        ("pack", "eingepackt", "einzupacken"),
        ("open", "geöffnet", "zu öffnen"),
        ("punish", "bestraft", "zu bestrafen"),
        ("pray", "gebetet", "zu beten"),
    ],
)
def test_nonfinite_forms_are_correct(english, participle, zu):
    verb = next(entry.verb.german for entry in VERBS if entry.verb.english.base == english)
    assert (verb.prefix + verb.participle, inflection.zu_infinitive(verb)) == (participle, zu)
