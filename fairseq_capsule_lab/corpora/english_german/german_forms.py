"""German word formation: the forms that follow from a word's citation form."""

import re

from fairseq_capsule_lab.corpora.english_german.lexemes import GermanVerb

_UMLAUTS = {"au": "äu", "aa": "ä", "oo": "ö", "a": "ä", "o": "ö", "u": "ü", "A": "Ä", "O": "Ö", "U": "Ü"}
_STRESSED_VOWEL = re.compile("(au|aa|oo|[aoAO]|(?<![eäE])[uU])(?=[^aeiouäöü]+(e[a-z]?)?$)")
_INSEPARABLE = re.compile("^(be|emp|ent|er|ge|ver|zer|über|unter)|ieren$")
_VOWEL_GROUP = re.compile("[aeiouyäöü]+", re.IGNORECASE)


def umlaut(word: str) -> str:
    """Front the last full vowel if possible: Haus -> Häus, Vogel -> Vögel; Eule and Auto do not change."""
    return _STRESSED_VOWEL.sub(lambda match: _UMLAUTS[match[0]], word, count=1)


def genitive(noun: str) -> str:
    """The genitive singular of a strong masculine or neuter: des Hundes, des Gartens, des Autos."""
    sibilant = re.search("(s|ß|x|z|sch)$", noun)
    one_syllable = len(_VOWEL_GROUP.findall(noun)) == 1
    return noun + ("es" if sibilant or one_syllable else "s")


def dative_plural(plural: str) -> str:
    """Den Hunden, but den Frauen and den Autos."""
    return plural if re.search("[ns]$", plural) else plural + "n"


def diminutive(noun: str) -> str:
    """Hünd|chen, Kätz|chen, Büch|lein."""
    stem = umlaut(re.sub("en?$", "", noun))
    return stem + ("lein" if re.search("(ch|g)$", stem) else "chen")


def attributive_stem(adjective: str) -> str:
    """The stem that takes adjective endings: dunkl-e, teur-e, müd-e."""
    if adjective.endswith("e"):
        return adjective[:-1]
    return re.sub("e([lr])$", r"\1", adjective) if re.search("(el|[ae]uer)$", adjective) else adjective


def comparative(adjective: str, fronted: bool) -> str:
    """Kleiner, älter, dunkler; `fronted` adds the umlaut."""
    stem = attributive_stem(adjective)
    return (umlaut(stem) if fronted else stem) + "er"


def superlative(adjective: str, fronted: bool) -> str:
    """Kleinst, ältest, größt."""
    stem = umlaut(adjective) if fronted else adjective
    needs_e = re.search("(d|t|s|ß|z|sch)$", stem) and stem != "größ"
    return re.sub("ßst$", "ßt", stem + ("est" if needs_e else "st"))


def quality_noun(adjective: str) -> str:
    """Dunkel|heit, Freundlich|keit."""
    return adjective.capitalize() + ("keit" if re.search("(ig|lich|bar|sam|er)$", adjective) else "heit")


def verb_stem(infinitive: str) -> str:
    """The stem that takes personal endings: mal-en, sammel-n."""
    return re.sub("e?n$", "", infinitive) if infinitive.endswith("en") else infinitive[:-1]


def elided(stem: str) -> str:
    """Samml- of sammeln, but spiel- of spielen."""
    return re.sub("(?<=[^aeiou])el$", "l", stem)


def derived_stem(verb: GermanVerb) -> str:
    """The stem that takes suffixes with an initial vowel, with the separable prefix: anruf|er, samml|ung."""
    return elided(verb.prefix + verb_stem(verb.infinitive))


def regular_verb(prefix: str, infinitive: str, auxiliary: str) -> GermanVerb:
    """The forms of a weak verb from its infinitive: arbeiten, arbeitet, arbeitete, gearbeitet."""
    stem = verb_stem(infinitive)
    link = "e" if re.search("[dt]$|[^aeiouäöülrhmn][mn]$", stem) else ""
    ge = "" if _INSEPARABLE.search(infinitive) else "ge"
    return GermanVerb(prefix, infinitive, stem + link + "t", stem + link + "te", ge + stem + link + "t", auxiliary)
