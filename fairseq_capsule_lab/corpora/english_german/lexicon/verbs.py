"""Verbs by frame: English (base/past/participle if irregular), German (present/past/participle if strong), notes.

An English verb can have a particle (`turn on`). German `an+rufen` has a separable prefix. With `sein` after the forms,
the perfect is formed with sein. Governed prepositions follow the verbs with `>` and the case.

Notes: `agent` (painter, Maler; `agent=servant` with the English word; `agent~` with umlaut: Käufer), `able` (readable,
lesbar), `noun=translation` (Übersetzung, what the verb denotes).
"""

from typing import NamedTuple, Tuple

from fairseq_capsule_lab.corpora.english_german.lexemes import (
    CLOTHING,
    DEVICE,
    FOOD,
    KINDS,
    LIVING,
    OBJECTS,
    PERSON,
    PLACE,
    TEXT,
    THING,
    TOPIC,
    Verb,
)
from fairseq_capsule_lab.corpora.english_german.lexicon.tables import english_verb, german_verb, governed, notes, rows

INTRANSITIVE, MOTION, TRANSITIVE, DATIVE, DITRANSITIVE, PREPOSITIONAL, CLAUSAL, INTERROGATIVE, INFINITIVAL, WEATHER = (
    "intransitive", "motion", "transitive", "dative", "ditransitive", "prepositional", "clausal", "interrogative",
    "infinitival", "weather",
)  # fmt: skip


class VerbEntry(NamedTuple):
    """A verb and its derivations: name of the note -> value, empty for the regular form."""

    verb: Verb
    derives: Tuple[Tuple[str, str], ...]


# (frame, kinds of subject, kinds of object): verbs
_TABLES = {
    (INTRANSITIVE, LIVING, ()): """
        sleep/slept/slept               schlafen/schläft/schlief/geschlafen
        laugh                           lachen
        cry                             weinen
        dance                           tanzen                              agent~
        snore                           schnarchen
        sit/sat/sat                     sitzen/sitzt/saß/gesessen
        stand/stood/stood               stehen/steht/stand/gestanden
        freeze/froze/frozen             frieren/friert/fror/gefroren
        sweat                           schwitzen
        whistle                         pfeifen/pfeift/pfiff/gepfiffen
        hesitate                        zögern
        stay                            bleiben/bleibt/blieb/geblieben sein
        wake/woke/woken up              auf+wachen sein
        get/got/got up                  auf+stehen/steht/stand/gestanden sein
        arrive                          an+kommen/kommt/kam/gekommen sein
        fall/fell/fallen asleep         ein+schlafen/schläft/schlief/geschlafen sein
        give/gave/given up              auf+geben/gibt/gab/gegeben
        """,
    (INTRANSITIVE, (PERSON,), ()): """
        work                            arbeiten                            agent
        sing/sang/sung                  singen/singt/sang/gesungen
        smoke                           rauchen                             agent
        cook                            kochen
        pray                            beten/betet/betete/gebetet          agent=worshipper
        smile                           lächeln
        complain                        klagen                              agent~
        join in                         mit+machen
        """,
    (MOTION, LIVING, ()): """
        go/went/gone                    gehen/geht/ging/gegangen sein
        run/ran/run                     laufen/läuft/lief/gelaufen sein     agent~
        come/came/come                  kommen/kommt/kam/gekommen sein
        swim/swam/swum                  schwimmen/schwimmt/schwamm/geschwommen sein  agent
        climb                           klettern sein
        hurry                           eilen sein
        crawl                           kriechen/kriecht/kroch/gekrochen sein
        jump                            springen/springt/sprang/gesprungen sein  agent
        fly/flew/flown                  fliegen/fliegt/flog/geflogen sein
        flee/fled/fled                  fliehen/flieht/floh/geflohen sein
        creep/crept/crept               schleichen/schleicht/schlich/geschlichen sein
        return                          zurück+kehren sein
        """,
    (MOTION, (PERSON,), ()): """
        travel                          reisen sein
        stroll                          spazieren sein
        drive/drove/driven              fahren/fährt/fuhr/gefahren sein     agent
        ride/rode/ridden                reiten/reitet/ritt/geritten sein    agent
        march                           marschieren sein
        hike                            wandern sein
        """,
    (TRANSITIVE, LIVING, KINDS[:-1]): """
        see/saw/seen                    sehen/sieht/sah/gesehen
        find/found/found                finden/findet/fand/gefunden         agent
        seek/sought/sought              suchen
        observe                         beobachten                          agent noun=observation
        discover                        entdecken                           agent noun=discovery
        love                            lieben
        hear/heard/heard                hören                               agent
        need                            brauchen
        """,
    (TRANSITIVE, (PERSON,), KINDS[:-1]): """
        paint                           malen                               agent
        describe                        beschreiben/beschreibt/beschrieb/beschrieben  noun=description
        look at                         an+sehen/sieht/sah/gesehen
        admire                          bewundern                           agent noun=admiration
        recognise                       erkennen/erkennt/erkannte/erkannt   able
        hate                            hassen
        miss                            vermissen
        count                           zählen                              able
        examine                         untersuchen                         noun=examination
        photograph                      fotografieren
        """,
    (TRANSITIVE, (PERSON,), OBJECTS): """
        buy/bought/bought               kaufen                              agent~
        sell/sold/sold                  verkaufen                           agent~
        steal/stole/stolen              stehlen/stiehlt/stahl/gestohlen
        hide/hid/hidden                 verstecken
        carry                           tragen/trägt/trug/getragen          agent~
        lose/lost/lost                  verlieren/verliert/verlor/verloren  agent
        use                             benutzen                            agent able noun=usage
        deliver                         liefern                             able noun=delivery
        collect                         sammeln                             agent=collector noun=collection
        throw/threw/thrown away         weg+werfen/wirft/warf/geworfen
        bring/brought/brought along     mit+bringen/bringt/brachte/gebracht
        take/took/taken away            weg+nehmen/nimmt/nahm/genommen
        pack                            ein+packen
        """,
    (TRANSITIVE, (PERSON,), (DEVICE, CLOTHING, THING)): """
        repair                          reparieren                          able
        clean                           putzen
        pull                            ziehen/zieht/zog/gezogen
        push                            schieben/schiebt/schob/geschoben
        lift                            heben/hebt/hob/gehoben
        measure                         messen/misst/maß/gemessen           able noun=measurement
        burn                            verbrennen/verbrennt/verbrannte/verbrannt  able noun=burning
        improve                         verbessern                          noun=improvement
        """,
    (TRANSITIVE, (PERSON,), (DEVICE,)): """
        turn on                         ein+schalten
        turn off                        aus+schalten
        build/built/built               bauen
        """,
    (TRANSITIVE, (PERSON,), (CLOTHING,)): """
        wear/wore/worn                  tragen/trägt/trug/getragen
        wash                            waschen/wäscht/wusch/gewaschen      able
        try on                          an+probieren
        hang/hung/hung up               auf+hängen
        """,
    (TRANSITIVE, LIVING, (FOOD,)): """
        eat/ate/eaten                   essen/isst/aß/gegessen
        taste                           probieren
        """,
    (TRANSITIVE, (PERSON,), (FOOD,)): """
        bake                            backen/backt/backte/gebacken        agent~
        peel                            schälen                             able
        prepare                         vor+bereiten                        noun=preparation
        """,
    (TRANSITIVE, (PERSON,), (TEXT,)): """
        write/wrote/written             schreiben/schreibt/schrieb/geschrieben  agent
        translate                       übersetzen                          agent=translator able noun=translation
        explain                         erklären                            able noun=explanation
        copy                            kopieren
        print                           drucken                             agent able
        publish                         veröffentlichen                     noun=publication
        """,
    (TRANSITIVE, (PERSON,), (PLACE, THING)): """
        open                            öffnen                              noun=opening
        close                           schließen/schließt/schloss/geschlossen  noun=closure
        lock                            ab+schließen/schließt/schloss/geschlossen
        destroy                         zerstören                           agent able noun=destruction
        """,
    (TRANSITIVE, (PERSON,), LIVING): """
        greet                           grüßen
        feed/fed/fed                    füttern                             noun=feeding
        catch/caught/caught             fangen/fängt/fing/gefangen
        call                            an+rufen/ruft/rief/gerufen          agent
        pick up                         ab+holen
        comfort                         trösten
        protect                         schützen
        hunt                            jagen                               agent~
        free                            befreien                            agent=liberator noun=liberation
        punish                          bestrafen                           noun=punishment
        """,
    (TRANSITIVE, (PERSON,), (PERSON,)): """
        invite                          ein+laden/lädt/lud/geladen          noun=invitation
        visit                           besuchen                            agent=visitor
        persuade                        überreden                           noun=persuasion
        """,
    (DATIVE, LIVING, LIVING): """
        help                            helfen/hilft/half/geholfen          agent
        follow                          folgen sein
        trust                           vertrauen
        obey                            gehorchen
        listen to                       zu+hören                            agent
        watch                           zu+sehen/sieht/sah/gesehen
        run/ran/run after               nach+laufen/läuft/lief/gelaufen sein
        """,
    (DATIVE, (PERSON,), (PERSON,)): """
        thank                           danken
        answer                          antworten
        congratulate                    gratulieren
        serve                           dienen                              agent=servant
        threaten                        drohen                              noun=threat
        forgive/forgave/forgiven        vergeben/vergibt/vergab/vergeben
        agree with                      zu+stimmen                          noun=agreement
        """,
    (DITRANSITIVE, (PERSON,), OBJECTS): """
        give/gave/given                 geben/gibt/gab/gegeben
        show/showed/shown               zeigen
        send/sent/sent                  schicken
        lend/lent/lent                  leihen/leiht/lieh/geliehen
        bring/brought/brought           bringen/bringt/brachte/gebracht
        offer                           an+bieten/bietet/bot/geboten
        promise                         versprechen/verspricht/versprach/versprochen
        recommend                       empfehlen/empfiehlt/empfahl/empfohlen
        hand                            reichen
        """,
    (PREPOSITIONAL, LIVING, LIVING): """
        wait > for                      warten > auf accusative
        laugh > at                      lachen > über accusative
        play > with                     spielen > mit dative                agent
        search > for                    suchen > nach dative
        """,
    (PREPOSITIONAL, (PERSON,), KINDS): """
        think/thought/thought > of      denken/denkt/dachte/gedacht > an accusative
        dream > of                      träumen > von dative                agent
        talk > about                    sprechen/spricht/sprach/gesprochen > über accusative
        ask > about                     fragen > nach dative
        report > on                     berichten > über accusative
        look/looked/looked > after      auf+passen > auf accusative
        """,
    (PREPOSITIONAL, (PERSON,), (TOPIC,)): """
        believe > in                    glauben > an accusative
        suffer > from                   leiden/leidet/litt/gelitten > unter dative
        take/took/taken part > in       teil+nehmen/nimmt/nahm/genommen > an dative
        fight/fought/fought > against   kämpfen > gegen accusative          agent
        """,
    (CLAUSAL, (PERSON,), ()): """
        say/said/said                   sagen
        think/thought/thought           denken/denkt/dachte/gedacht
        hope                            hoffen
        believe                         glauben
        know/knew/known                 wissen/weiß/wusste/gewusst
        claim                           behaupten                           noun=claim
        fear                            fürchten
        suspect                         vermuten                            noun=suspicion
        notice                          bemerken                            noun=remark
        announce                        an+kündigen                         noun=announcement
        """,
    (INTERROGATIVE, (PERSON,), ()): """
        know/knew/known                 wissen/weiß/wusste/gewusst
        ask                             fragen
        explain                         erklären
        understand/understood/understood  verstehen/versteht/verstand/verstanden
        """,
    (INFINITIVAL, (PERSON,), ()): """
        try                             versuchen
        plan                            planen                              noun=planning
        hope                            hoffen
        promise                         versprechen/verspricht/versprach/versprochen
        start                           an+fangen/fängt/fing/gefangen
        """,
    (WEATHER, (), ()): """
        rain                            regnen
        snow                            schneien
        thunder                         donnern
        """,
}

# Verbs without an English progressive.
STATIVE = frozenset((
    "see", "hear", "love", "hate", "need", "miss", "recognise", "know", "believe", "understand", "trust", "obey", "get",
))  # fmt: skip


def _entry(frame, subjects, objects, columns):
    english, _, english_preposition = columns[0].partition(" > ")
    german, _, german_preposition = columns[1].partition(" > ")
    governs = governed(english_preposition, german_preposition)
    verb = Verb(frame, subjects, objects, english_verb(english), german_verb(german), governs)
    return VerbEntry(verb, tuple(notes(columns, {"agent", "agent~", "able", "noun"}).items()))


VERBS = tuple(_entry(*section, columns) for section, table in _TABLES.items() for columns in rows(table))
