"""Adjectives: English, German, and the derivations that they allow.

Notes: `compare` (smaller, smallest), `umlaut` (the same with umlaut: älter), `un` (unfriendly), `ness` (darkness), `ly`
(slowly, an adverb of manner).
"""

from typing import NamedTuple, Tuple

from fairseq_capsule_lab.corpora.english_german.german_forms import attributive_stem
from fairseq_capsule_lab.corpora.english_german.lexemes import KINDS, LIVING, OBJECTS, PERSON, PLACE, TEXT, Adjective
from fairseq_capsule_lab.corpora.english_german.lexicon.tables import notes, rows


class AdjectiveEntry(NamedTuple):
    """An adjective and the names of its derivations."""

    adjective: Adjective
    derives: Tuple[str, ...]


_TABLES = {
    KINDS: """
        big             groß            umlaut
        small           klein           compare
        old             alt             umlaut
        beautiful       schön           compare
        famous          berühmt         compare
        strange         seltsam         compare
        important       wichtig         compare un
        ugly            hässlich        compare
        dangerous       gefährlich      compare
        wonderful       wunderbar
        interesting     interessant     compare un
        popular         beliebt         compare un
        new             neu             compare
        """,
    LIVING: """
        young           jung            umlaut
        hungry          hungrig         compare
        thirsty         durstig         compare
        tired           müde
        happy           glücklich       compare un ly
        friendly        freundlich      compare un ness
        clever          klug            umlaut ness
        lazy            faul            compare ness
        sick            krank           umlaut ness
        healthy         gesund          un
        shy             schüchtern      ness
        brave           tapfer          ly
        wild            wild            ness ly
        blind           blind           ness
        sad             traurig         compare ly
        strong          stark           umlaut
        weak            schwach         umlaut
        slow            langsam         compare ness ly
        quick           schnell         compare ly
        """,
    (PERSON,): """
        polite          höflich         ness ly
        thankful        dankbar         ness un ly
        cheerful        fröhlich        ness ly
        stubborn        stur            ness ly
        rich            reich           compare
        poor            arm             umlaut
        musical         musikalisch     un ly
        careful         vorsichtig      compare ly
        quiet           leise           ly
        proud           stolz           compare ly
        busy            fleißig         compare ly
        lonely          einsam          ness
        """,
    OBJECTS: """
        expensive       teuer           compare
        cheap           billig          compare
        heavy           schwer          compare
        red             rot
        green           grün
        blue            blau
        yellow          gelb
        black           schwarz
        white           weiß
        broken          kaputt
        dirty           schmutzig       compare
        useful          nützlich        compare
        """,
    OBJECTS[2:] + (PLACE,): """
        clean           sauber          compare un
        empty           leer
        round           rund
        narrow          schmal          compare
        wide            breit           compare
        """,
    (PLACE,): """
        dark            dunkel          compare ness
        cold            kalt            umlaut
        warm            warm            umlaut
        bright          hell            compare
        deep            tief            compare
        secret          geheim
        """,
    (TEXT,): """
        long            lang            umlaut
        short           kurz            umlaut
        funny           lustig          compare
        boring          langweilig      compare
        clear           klar            compare un
        """,
}

# Stems of adjectives in -less and German -los.
_LACKING = """
    end         end
    colour      farb
    name        namen
    use         nutz
    shape       form
    hope        hoffnungs
    sleep       schlaf
    home        heimat
    friend      freund
    power       macht
    tooth       zahn
    speech      sprach
    """
_LACKING_LIVING = 5  # the first five describe things, the others living beings

# Adverbs of manner without an adjective.
MANNER_TABLE = """
    secretly        heimlich
    loudly          laut
    gladly          gern
    alone           allein
    suddenly        plötzlich
    """


def _entry(kinds, columns):
    english, german = columns[:2]
    derives = notes(columns, {"compare", "umlaut", "un", "ness", "ly"})
    return AdjectiveEntry(Adjective(kinds, english, german, attributive_stem(german)), tuple(derives))


def _lacking():
    for index, (english, german) in enumerate(rows(_LACKING)):
        kinds = OBJECTS + (PLACE,) if index < _LACKING_LIVING else LIVING
        yield AdjectiveEntry(Adjective(kinds, english + "less", german + "los", german + "los"), ())


ADJECTIVES = tuple(_entry(kinds, columns) for kinds, table in _TABLES.items() for columns in rows(table))
ADJECTIVES += tuple(_lacking())
