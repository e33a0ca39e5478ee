"""Nouns: English (singular/plural if irregular), gender, German singular, plural, and the first form in a compound.

Gender `w` is a weak masculine (der Junge, den Jungen). A dash means that the noun begins no compound.
"""

from fairseq_capsule_lab.corpora.english_german import english_forms, german_forms
from fairseq_capsule_lab.corpora.english_german.lexemes import (
    ANIMAL,
    CLOTHING,
    DEVICE,
    FOOD,
    PERSON,
    PLACE,
    TEXT,
    THING,
    TOPIC,
    Noun,
)
from fairseq_capsule_lab.corpora.english_german.lexicon.tables import rows

_TABLES = {
    PERSON: """
        man/men             m  Mann        Männer       Männer
        woman/women         f  Frau        Frauen       Frauen
        child/children      n  Kind        Kinder       Kinder
        boy                 w  Junge       Jungen       Jungen
        girl                n  Mädchen     Mädchen      Mädchen
        teacher             m  Lehrer      Lehrer       Lehrer
        doctor              m  Arzt        Ärzte        Arzt
        neighbour           w  Nachbar     Nachbarn     Nachbar
        student             w  Student     Studenten    Studenten
        friend              m  Freund      Freunde      Freundes
        guest               m  Gast        Gäste        Gäste
        farmer              w  Bauer       Bauern       Bauern
        king                m  König       Könige       Königs
        mother              f  Mutter      Mütter       Mutter
        father              m  Vater       Väter        Vater
        brother             m  Bruder      Brüder       -
        sister              f  Schwester   Schwestern   -
        aunt                f  Tante       Tanten       -
        uncle               m  Onkel       Onkel        -
        soldier             w  Soldat      Soldaten     Soldaten
        judge               m  Richter     Richter      Richter
        cook                m  Koch        Köche        Koch
        thief/thieves       m  Dieb        Diebe        Diebes
        witch               f  Hexe        Hexen        Hexen
        knight              m  Ritter      Ritter       Ritter
        poet                m  Dichter     Dichter      Dichter
        sailor              w  Matrose     Matrosen     Matrosen
        pilot               w  Pilot       Piloten      Piloten
        customer            w  Kunde       Kunden       Kunden
        singer              m  Sänger      Sänger       Sänger
        giant               w  Riese       Riesen       Riesen
        dwarf               m  Zwerg       Zwerge       Zwerg
        scientist           m  Forscher    Forscher     Forscher
        tourist             w  Tourist     Touristen    Touristen
        """,
    ANIMAL: """
        dog                 m  Hund        Hunde        Hunde
        cat                 f  Katze       Katzen       Katzen
        bird                m  Vogel       Vögel        Vogel
        horse               n  Pferd       Pferde       Pferde
        cow                 f  Kuh         Kühe         Kuh
        mouse/mice          f  Maus        Mäuse        Mäuse
        bear                w  Bär         Bären        Bären
        lion                w  Löwe        Löwen        Löwen
        monkey              w  Affe        Affen        Affen
        hare                w  Hase        Hasen        Hasen
        goat                f  Ziege       Ziegen       Ziegen
        duck                f  Ente        Enten        Enten
        goose/geese         f  Gans        Gänse        Gänse
        frog                m  Frosch      Frösche      Frosch
        snake               f  Schlange    Schlangen    Schlangen
        wolf/wolves         m  Wolf        Wölfe        Wolfs
        fox                 m  Fuchs       Füchse       Fuchs
        elephant            w  Elefant     Elefanten    Elefanten
        donkey              m  Esel        Esel         Esels
        pig                 n  Schwein     Schweine     Schweine
        hen                 n  Huhn        Hühner       Hühner
        owl                 f  Eule        Eulen        Eulen
        bee                 f  Biene       Bienen       Bienen
        hedgehog            m  Igel        Igel         Igel
        crow                f  Krähe       Krähen       Krähen
        turtle              f  Schildkröte  Schildkröten  Schildkröten
        """,
    FOOD: """
        apple               m  Apfel       Äpfel        Apfel
        cake                m  Kuchen      Kuchen       Kuchen
        egg                 n  Ei          Eier         Eier
        soup                f  Suppe       Suppen       Suppen
        pear                f  Birne       Birnen       Birnen
        potato/potatoes     f  Kartoffel   Kartoffeln   Kartoffel
        tomato/tomatoes     f  Tomate      Tomaten      Tomaten
        carrot              f  Karotte     Karotten     Karotten
        cherry              f  Kirsche     Kirschen     Kirsch
        sausage             f  Wurst       Würste       Wurst
        plum                f  Pflaume     Pflaumen     Pflaumen
        nut                 f  Nuss        Nüsse        Nuss
        lemon               f  Zitrone     Zitronen     Zitronen
        onion               f  Zwiebel     Zwiebeln     Zwiebel
        mushroom            m  Pilz        Pilze        Pilz
        salad               m  Salat       Salate       Salat
        biscuit             m  Keks        Kekse        Keks
        strawberry          f  Erdbeere    Erdbeeren    Erdbeer
        """,
    TEXT: """
        book                n  Buch        Bücher       Buch
        letter              m  Brief       Briefe       Brief
        newspaper           f  Zeitung     Zeitungen    Zeitungs
        story               f  Geschichte  Geschichten  Geschichten
        poem                n  Gedicht     Gedichte     Gedicht
        song                n  Lied        Lieder       Lieder
        report              m  Bericht     Berichte     Berichts
        novel               m  Roman       Romane       Roman
        contract            m  Vertrag     Verträge     Vertrags
        recipe              n  Rezept      Rezepte      Rezept
        message             f  Nachricht   Nachrichten  Nachrichten
        sentence            m  Satz        Sätze        Satz
        list                f  Liste       Listen       Listen
        legend              f  Legende     Legenden     Legenden
        """,
    DEVICE: """
        lamp                f  Lampe       Lampen       Lampen
        machine             f  Maschine    Maschinen    Maschinen
        clock               f  Uhr         Uhren        Uhren
        radio               n  Radio       Radios       Radio
        computer            m  Computer    Computer     Computer
        engine              m  Motor       Motoren      Motoren
        camera              f  Kamera      Kameras      Kamera
        oven                m  Ofen        Öfen         Ofen
        """,
    CLOTHING: """
        hat                 m  Hut         Hüte         Hut
        coat                m  Mantel      Mäntel       Mantel
        shoe                m  Schuh       Schuhe       Schuh
        shirt               n  Hemd        Hemden       Hemden
        dress               n  Kleid       Kleider      Kleider
        skirt               m  Rock        Röcke        Rock
        jacket              f  Jacke       Jacken       Jacken
        cap                 f  Mütze       Mützen       Mützen
        boot                m  Stiefel     Stiefel      Stiefel
        """,
    THING: """
        door                f  Tür         Türen        Tür
        window              n  Fenster     Fenster      Fenster
        table               m  Tisch       Tische       Tisch
        chair               m  Stuhl       Stühle       Stuhl
        key                 m  Schlüssel   Schlüssel    Schlüssel
        cup                 f  Tasse       Tassen       Tassen
        bottle              f  Flasche     Flaschen     Flaschen
        knife/knives        n  Messer      Messer       Messer
        spoon               m  Löffel      Löffel       Löffel
        fork                f  Gabel       Gabeln       Gabel
        bag                 f  Tasche      Taschen      Taschen
        box                 f  Kiste       Kisten       Kisten
        mirror              m  Spiegel     Spiegel      Spiegel
        bed                 n  Bett        Betten       Bett
        cupboard            m  Schrank     Schränke     Schrank
        carpet              m  Teppich     Teppiche     Teppich
        bucket              m  Eimer       Eimer        Eimer
        ladder              f  Leiter      Leitern      Leiter
        hammer              m  Hammer      Hämmer       Hammer
        rope                n  Seil        Seile        Seil
        candle              f  Kerze       Kerzen       Kerzen
        basket              m  Korb        Körbe        Korb
        plate               m  Teller      Teller       Teller
        pot                 m  Topf        Töpfe        Topf
        ring                m  Ring        Ringe        Ring
        wheel               n  Rad         Räder        Rad
        boat                n  Boot        Boote        Boots
        car                 n  Auto        Autos        Auto
        ship                n  Schiff      Schiffe      Schiffs
        violin              f  Geige       Geigen       Geigen
        drum                f  Trommel     Trommeln     Trommel
        flower              f  Blume       Blumen       Blumen
        tree                m  Baum        Bäume        Baum
        stone               m  Stein       Steine       Stein
        branch              m  Ast         Äste         Ast
        flag                f  Fahne       Fahnen       Fahnen
        roof                n  Dach        Dächer       Dach
        fence               m  Zaun        Zäune        Zaun
        bell                f  Glocke      Glocken      Glocken
        pillow              n  Kissen      Kissen       Kissen
        blanket             f  Decke       Decken       Decken
        picture             n  Bild        Bilder       Bilder
        tent                n  Zelt        Zelte        Zelt
        """,
    PLACE: """
        house               n  Haus        Häuser       Haus
        garden              m  Garten      Gärten       Garten
        kitchen             f  Küche       Küchen       Küchen
        room                n  Zimmer      Zimmer       Zimmer
        school              f  Schule      Schulen      Schul
        church              f  Kirche      Kirchen      Kirchen
        forest              m  Wald        Wälder       Wald
        city                f  Stadt       Städte       Stadt
        village             n  Dorf        Dörfer       Dorf
        factory             f  Fabrik      Fabriken     Fabrik
        tower               m  Turm        Türme        Turm
        castle              n  Schloss     Schlösser    Schloss
        office              n  Büro        Büros        Büro
        shop                m  Laden       Läden        Laden
        hotel               n  Hotel       Hotels       Hotel
        cellar              m  Keller      Keller       Keller
        stable              m  Stall       Ställe       Stall
        park                m  Park        Parks        Park
        theatre             n  Theater     Theater      Theater
        library             f  Bibliothek  Bibliotheken  Bibliotheks
        harbour             m  Hafen       Häfen        Hafen
        valley              n  Tal         Täler        Tal
        cave                f  Höhle       Höhlen       Höhlen
        field               n  Feld        Felder       Feld
        barn                f  Scheune     Scheunen     Scheunen
        workshop            f  Werkstatt   Werkstätten  Werkstatt
        cabin               f  Hütte       Hütten       Hütten
        hall                m  Saal        Säle         Saal
        palace              m  Palast      Paläste      Palast
        bakery              f  Bäckerei    Bäckereien   Bäckerei
        """,
    TOPIC: """
        idea                f  Idee        Ideen        Ideen
        plan                m  Plan        Pläne        -
        dream               m  Traum       Träume       Traum
        journey             f  Reise       Reisen       Reise
        problem             n  Problem     Probleme     -
        danger              f  Gefahr      Gefahren     Gefahren
        mistake             m  Fehler      Fehler       Fehler
        game                n  Spiel       Spiele       Spiel
        wedding             f  Hochzeit    Hochzeiten   Hochzeits
        concert             n  Konzert     Konzerte     Konzert
        storm               m  Sturm       Stürme       Sturm
        """,
}

# Words that only begin compounds: English, German.
_MODIFIERS = """
    winter      Winter
    summer      Sommer
    wood        Holz
    iron        Eisen
    gold        Gold
    silver      Silber
    paper       Papier
    glass       Glas
    leather     Leder
    morning     Morgen
    evening     Abend
    night       Nacht
    birthday    Geburtstags
    holiday     Ferien
    mountain    Berg
    sea         Meeres
    river       Fluss
    water       Wasser
    wine        Wein
    coffee      Kaffee
    tea         Tee
    milk        Milch
    music       Musik
    sport       Sport
    art         Kunst
    work        Arbeits
    moon        Mond
    star        Sternen
    """


def _noun(kind, english, gender, german, german_plural, linking):
    singular, _, plural = english.partition("/")
    weak = gender == "w"
    declined = german_plural if weak else german
    return Noun(
        kind=kind,
        english=singular,
        english_plural=plural or english_forms.with_s(singular),
        gender="m" if weak else gender,
        german=german,
        german_plural=german_plural,
        genitive=declined if weak or gender == "f" else german_forms.genitive(german),
        oblique=declined,
        linking=linking.strip("-"),
    )


NOUNS = tuple(_noun(kind, *columns) for kind, table in _TABLES.items() for columns in rows(table))
MODIFIERS = tuple((english, german) for english, german in rows(_MODIFIERS))
