"""Agreement, word formation and spelling, compared with forms by hand; every word has one translation."""

import re
from collections import defaultdict
from itertools import chain

import pytest

from fairseq_capsule_lab.corpora.toy import grammar, inflection, lexicon
from tests.corpora.words import adjective, check, clause, noun, np, nps, verb

NOUNS = list(chain(*lexicon.NOUNS.values(), *lexicon.DERIVED_NOUNS.values()))
VERBS = list(chain(*lexicon.VERBS.values()))


def german(phrase, case):
    return " ".join(word.text for word in phrase.words(case).german)


@pytest.mark.parametrize(
    "phrase, nominative, accusative, dative",
    [
        (np("the old man"), "der alte Mann", "den alten Mann", "dem alten Mann"),
        (np("a old man"), "ein alter Mann", "einen alten Mann", "einem alten Mann"),
        (np("no old woman"), "keine alte Frau", "keine alte Frau", "keiner alten Frau"),
        (np("my old horse"), "mein altes Pferd", "mein altes Pferd", "meinem alten Pferd"),
        (np("every tired boy"), "jeder müde Junge", "jeden müden Jungen", "jedem müden Jungen"),
        (nps("the old man"), "die alten Männer", "die alten Männer", "den alten Männern"),
        (nps("all old woman"), "alle alten Frauen", "alle alten Frauen", "allen alten Frauen"),
        (nps("many dark forest"), "viele dunkle Wälder", "viele dunkle Wälder", "vielen dunklen Wäldern"),
        (
            nps("twenty-three old man"),
            "dreiundzwanzig alte Männer",
            "dreiundzwanzig alte Männer",
            "dreiundzwanzig alten Männern",
        ),
        (nps("- expensive car"), "teure Autos", "teure Autos", "teuren Autos"),
        (np("Anna_'s big dog"), "Annas großer Hund", "Annas großen Hund", "Annas großem Hund"),
    ],
)
def test_determiners_adjectives_and_nouns_agree(phrase, nominative, accusative, dative):
    assert [german(phrase, case).strip() for case in inflection.CASES[:3]] == [nominative, accusative, dative]


@pytest.mark.parametrize(
    "owner, expected",
    [
        (np("the old man"), "die Tür des alten Mannes"),
        (np("my sister"), "die Tür meiner Schwester"),
        (np("a tired boy"), "die Tür eines müden Jungen"),
        (nps("the child"), "die Tür der Kinder"),
        (np("this castle"), "die Tür dieses Schlosses"),
        (np("the park"), "die Tür des Parks"),
    ],
)
def test_owners_are_in_the_genitive(owner, expected):
    assert german(grammar.possession(np("the door"), owner), "nominative") == expected


@pytest.mark.parametrize(
    "subject, english, expected",
    [
        (grammar.I, "I sleep.", "Ich schlafe."),
        (grammar.YOU, "You sleep.", "Du schläfst."),
        (grammar.SHE, "She sleeps.", "Sie schläft."),
        (grammar.THEY, "They sleep.", "Sie schlafen."),
        (nps("the dog"), "The dogs sleep.", "Die Hunde schlafen."),
        (grammar.coordination(grammar.SHE, np("the dog")), "She and the dog sleep.", "Sie und der Hund schlafen."),
        (np("a old man"), "An old man sleeps.", "Ein alter Mann schläft."),
    ],
)
def test_the_verb_agrees_with_its_subject(subject, english, expected):
    check(clause("sleep", subject), english, expected)


@pytest.mark.parametrize(
    "english, expected",
    [
        ("see", "sehe siehst sieht sehen sah sahst sah sahen"),
        ("work", "arbeite arbeitest arbeitet arbeiten arbeitete arbeitetest arbeitete arbeiteten"),
        ("dance", "tanze tanzt tanzt tanzen tanzte tanztest tanzte tanzten"),
        ("collect", "sammle sammelst sammelt sammeln sammelte sammeltest sammelte sammelten"),
        ("open", "öffne öffnest öffnet öffnen öffnete öffnetest öffnete öffneten"),
        ("invite", "lade lädst lädt laden lud ludest lud luden"),
        ("understand", "verstehe verstehst versteht verstehen verstand verstandest verstand verstanden"),
        ("must", "muss musst muss müssen musste musstest musste mussten"),
        ("will", "werde wirst wird werden wurde wurdest wurde wurden"),
    ],
)
def test_verbs_are_conjugated(english, expected):
    persons = ((1, False), (2, False), (3, False), (3, True))
    forms = [verb(english).german_finite(past, *person) for past in (False, True) for person in persons]
    assert " ".join(forms) == expected


@pytest.mark.parametrize(
    "english, expected",
    [("repair", "repariert"), ("prepare", "vorbereitet"), ("pack", "eingepackt"), ("free", "befreit")],
)
def test_participles_are_formed(english, expected):
    assert verb(english).prefix + verb(english).german[-1] == expected


@pytest.mark.parametrize(
    "word, singular, plural",
    [
        ("kitchen_door", "Küchentür", "Küchentüren"),
        ("child_book", "Kinderbuch", "Kinderbücher"),
        ("winter_coat", "Wintermantel", "Wintermäntel"),
        ("little_dog", "Hündchen", "Hündchen"),
        ("female_student", "Studentin", "Studentinnen"),
    ],
)
def test_several_english_words_are_one_german_word(word, singular, plural):
    assert (noun(word).german, noun(word).plural) == (singular, plural)


@pytest.mark.parametrize(
    "word, expected",
    [
        ("unfriendly", "unfreundlich"),
        ("sleeping", "schlafend"),
        ("painted", "gemalt"),
        ("strongest", "stärkst"),
        ("most_dangerous", "gefährlichst"),
        ("darker", "dunkler"),
        ("more_expensive", "teurer"),
        ("happier", "glücklicher"),
    ],
)
def test_derived_adjectives_are_translated(word, expected):
    assert adjective(word).stem == expected


def assert_function(pairs):
    """Check that no English form has two German translations."""
    translations = defaultdict(set)
    for english, target in pairs:
        translations[english].add(target)
    assert {english: targets for english, targets in translations.items() if len(targets) > 1} == {}


def test_every_word_has_one_translation():
    assert_function((word.english[0], word[2:]) for word in NOUNS)
    assert not {word.english[0] for word in NOUNS} & {word.english[1] for word in NOUNS}
    assert_function((word.english, word.stem) for words in lexicon.ADJECTIVES.values() for word in words)
    lexical = [word for word in VERBS if word.frame not in ("perfect", "passive", "copula")]
    assert_function(((word.english, word.particle, word.governs), (word.prefix, word.german)) for word in lexical)
    assert_function(chain(*lexicon.MODIFIERS.values()))
    for section in ("frequency", "manner", "comment", "question", "number"):
        assert_function(lexicon.WORDS[section])
    # `they ran` and `they run` must differ, or the tense would be ambiguous.
    assert [word.english[0] for word in VERBS if word.english[0] == word.english[1]] == []


def test_words_that_are_aligned_one_by_one_are_equally_many():
    """Otherwise `pair` would drop some."""
    adverbials = [
        words for name in ("frequency", "manner", "comment", "question", "number") for words in lexicon.WORDS[name]
    ]
    for english, target in chain(adverbials, *lexicon.TIMES.values()):
        assert len(english.split()) == len(target.split()), english


def test_german_nouns_are_capitalised_words():
    for word in NOUNS:
        for form in filter(None, (word.german, word.plural, word.genitive, word.oblique, word.small)):
            assert re.fullmatch("[A-ZÄÖÜ][a-zäöüß]+", form), form


@pytest.mark.parametrize(
    "rule, expected",
    [
        (inflection.with_s, {"box": "boxes", "city": "cities", "boy": "boys", "go": "goes"}),
        (lambda word: inflection.with_suffix(word, "ing"), {"see": "seeing", "bake": "baking", "cry": "crying"}),
        (lambda word: inflection.with_suffix(word, "ed"), {"cry": "cried", "play": "played", "plan": "planned"}),
    ],
)
def test_spelling_rules_are_applied(rule, expected):
    assert {word: rule(word) for word in expected} == expected
