"""German inflection: endings by gender, number and case; verb forms by person."""

import re

from fairseq_capsule_lab.corpora.english_german import german_forms
from fairseq_capsule_lab.corpora.english_german.lexemes import PLURAL, Determiner, GermanVerb, Noun

CASES = ("nominative", "accusative", "dative", "genitive")


def _paradigm(table: str) -> dict:
    """Read a table: rows are genders and the plural, columns are cases, `-` means no ending."""
    rows = (line.split() for line in table.splitlines() if line.strip())
    return {row[0]: dict(zip(CASES, (form.strip("-") for form in row[1:]))) for row in rows}


_STRONG = _paradigm("""
    m       er  en  em  en
    f       e   e   er  er
    n       es  es  em  en
    plural  e   e   en  er
    """)
_WEAK = _paradigm("""
    m       e   en  en  en
    f       e   e   en  en
    n       e   e   en  en
    plural  en  en  en  en
    """)
_MIXED = _paradigm("""
    m       er  en  en  en
    f       e   e   en  en
    n       es  es  en  en
    plural  en  en  en  en
    """)
_DIESER = {gender: dict(row, genitive="es" if gender in "mn" else "er") for gender, row in _STRONG.items()}
_EIN = {
    gender: dict(row, **{"m": {"nominative": ""}, "n": {"nominative": "", "accusative": ""}}.get(gender, {}))
    for gender, row in _DIESER.items()
}
_DER = _paradigm("""
    m       er  en  em  es
    f       ie  ie  er  er
    n       as  as  em  es
    plural  ie  ie  en  er
    """)
_NONE = {gender: dict.fromkeys(CASES, "") for gender in _STRONG}

# pattern of the determiner -> (its own endings, the endings of adjectives after it)
_PATTERNS = {
    "der": (_DER, _WEAK),
    "dieser": (_DIESER, _WEAK),
    "ein": (_EIN, _MIXED),
    "strong": (_STRONG, _STRONG),
    "bare": (_NONE, _STRONG),
}
_RELATIVE = dict(_DER, plural=dict(_DER["plural"], dative="enen"))

# English subject form -> German nominative, accusative, dative
PRONOUNS = {
    "I": dict(zip(CASES, ("ich", "mich", "mir"))),
    "you": dict(zip(CASES, ("du", "dich", "dir"))),
    "he": dict(zip(CASES, ("er", "ihn", "ihm"))),
    "she": dict(zip(CASES, ("sie", "sie", "ihr"))),
    "it": dict(zip(CASES, ("es", "es", "ihm"))),
    "we": dict(zip(CASES, ("wir", "uns", "uns"))),
    "they": dict(zip(CASES, ("sie", "sie", "ihnen"))),
    "who": dict(zip(CASES, ("wer", "wen", "wem"))),
    "what": dict(zip(CASES, ("was", "was", "was"))),
}


def _row(noun: Noun, number: str) -> str:
    return PLURAL if number == PLURAL else noun.gender


def determiner(word: Determiner, noun: Noun, number: str, case: str) -> str:
    """Der, dieses, keinem."""
    return word.german + _PATTERNS[word.pattern][0][_row(noun, number)][case]


def adjective_ending(word: Determiner, noun: Noun, number: str, case: str) -> str:
    """The ending of an adjective after `word`."""
    return _PATTERNS[word.pattern][1][_row(noun, number)][case]


def relative_pronoun(noun: Noun, number: str, case: str) -> str:
    """Der, den, denen."""
    return "d" + _RELATIVE[_row(noun, number)][case]


def noun_form(noun: Noun, number: str, case: str) -> str:
    """Hund, Hundes, Hunden."""
    if number == PLURAL:
        return german_forms.dative_plural(noun.german_plural) if case == "dative" else noun.german_plural
    return {"nominative": noun.german, "genitive": noun.genitive}.get(case, noun.oblique)


# Singular 1, 2, 3 and plural 1 and 3 (which are equal). The familiar plural ihr does not occur.
_IRREGULAR = {
    ("sein", "present"): "bin bist ist sind",
    ("sein", "past"): "war warst war waren",
    ("haben", "present"): "habe hast hat haben",
    ("haben", "past"): "hatte hattest hatte hatten",
    ("werden", "present"): "werde wirst wird werden",
    ("werden", "past"): "wurde wurdest wurde wurden",
    ("können", "present"): "kann kannst kann können",
    ("können", "past"): "konnte konntest konnte konnten",
    ("müssen", "present"): "muss musst muss müssen",
    ("sollen", "present"): "soll sollst soll sollen",
    ("dürfen", "present"): "darf darfst darf dürfen",
    ("wollen", "present"): "will willst will wollen",
    ("wollen", "past"): "wollte wolltest wollte wollten",
    ("wissen", "present"): "weiß weißt weiß wissen",
}


def auxiliary(infinitive: str, tense: str, person: int, number: str) -> str:
    """A form of haben, sein, werden or of a modal."""
    return _IRREGULAR[infinitive, tense].split()[3 if number == PLURAL else person - 1]


def finite(verb: GermanVerb, tense: str, person: int, number: str) -> str:
    """The finite form of a verb without its separable prefix."""
    if (verb.infinitive, tense) in _IRREGULAR:
        return auxiliary(verb.infinitive, tense, person, number)
    return (_present if tense == "present" else _past)(verb, person, number)


def _present(verb: GermanVerb, person: int, number: str) -> str:
    if number == PLURAL:
        return verb.infinitive
    if person == 1:
        return german_forms.elided(german_forms.verb_stem(verb.infinitive)) + "e"
    if person == 3:
        return verb.present
    stem = verb.present[:-1]
    return stem + ("t" if re.search("[sßz]$", stem) else "st")


def _past(verb: GermanVerb, person: int, number: str) -> str:
    weak = verb.past.endswith("te")
    if number == PLURAL:
        return verb.past + ("n" if weak else "en")
    if person != 2:
        return verb.past
    return verb.past + ("est" if re.search("[sßzdt]$", verb.past) else "st")


def zu_infinitive(verb: GermanVerb) -> str:
    """Zu öffnen, anzurufen."""
    return f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"
