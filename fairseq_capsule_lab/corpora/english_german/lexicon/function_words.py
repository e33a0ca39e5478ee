"""Closed classes: determiners, prepositions, adverbs, conjunctions, modals, names, numbers."""

from fairseq_capsule_lab.corpora.english_german.lexemes import Adverb, Conjunction, Determiner, Modal, Preposition
from fairseq_capsule_lab.corpora.english_german.lexicon.tables import rows

THE = Determiner("the", "d", "der")
A = Determiner("a", "ein", "ein")
NO = Determiner("no", "kein", "ein")
BARE = Determiner("", "", "bare")
# First the singular, then the plural.
DEMONSTRATIVES = (Determiner("this", "dies", "dieser"), Determiner("these", "dies", "dieser"))
QUANTIFIERS = (
    Determiner("every", "jed", "dieser"),
    Determiner("all", "all", "dieser"),
    Determiner("many", "viel", "strong"),
    Determiner("some", "einig", "strong"),
)
POSSESSIVES = tuple(
    Determiner(english, german, "ein")
    for english, german in (
        ("my", "mein"), ("your", "dein"), ("his", "sein"), ("her", "ihr"), ("our", "unser"), ("their", "ihr"),
    )
)  # fmt: skip

NAMES = (
    "Anna", "Peter", "Maria", "Paul", "Emma", "Hugo", "Clara", "Martin", "Julia", "Oskar", "Nora", "Emil", "Lena",
    "Anton", "Ida", "Robert",
)  # fmt: skip

LOCATIONS = tuple(
    Preposition(english, german, "dative")
    for english, german in (
        ("in", "in"), ("behind", "hinter"), ("in front of", "vor"), ("next to", "neben"), ("near", "bei"),
    )
)  # fmt: skip
DIRECTIONS = (
    Preposition("into", "in", "accusative"),
    Preposition("to", "zu", "dative"),
    Preposition("through", "durch", "accusative"),
    Preposition("out of", "aus", "dative"),
    Preposition("across", "über", "accusative"),
)
COMPANY = (
    Preposition("with", "mit", "dative"),
    Preposition("without", "ohne", "accusative"),
    Preposition("for", "für", "accusative"),
)
BY = Preposition("by", "von", "dative")

# Adverbs with the tenses that they occur with.
_TIMES = """
    today                   heute                   present past perfect future progressive
    now                     jetzt                   present progressive
    this week               diese Woche             present past perfect future
    soon                    bald                    future
    tomorrow                morgen                  future
    yesterday               gestern                 past
    recently                kürzlich                past perfect
    in the morning          am Morgen               present past future
    in the evening          am Abend                present past future
    at night                nachts                  present past future
    on Monday               am Montag               present past future
    on Tuesday              am Dienstag             present past future
    on Friday               am Freitag              present past future
    on Sunday               am Sonntag              present past future
    every day               jeden Tag               present past future
    last year               letztes Jahr            past
    next year               nächstes Jahr           future
    in winter               im Winter               present past future
    in summer               im Sommer               present past future
    two days ago            vor zwei Tagen          past
    in two hours            in zwei Stunden         future
    """
_FREQUENCIES = """
    often                   oft
    always                  immer
    rarely                  selten
    never                   nie
    sometimes               manchmal
    """
_COMMENTS = """
    perhaps                 vielleicht
    unfortunately           leider
    of course               natürlich
    therefore               deshalb
    nevertheless            trotzdem
    luckily                 zum Glück
    """
_CONJUNCTIONS = """
    because                 weil
    although                obwohl
    if                      wenn
    while                   während
    before                  bevor
    after                   nachdem
    until                   bis
    as soon as              sobald
    """
_QUESTIONS = """
    why                     warum
    when                    wann
    where                   wo
    how                     wie
    """
_MODALS = """
    can                     können                  could
    must                    müssen
    should                  sollen
    may                     dürfen
    want                    wollen                  wanted
    """
_NUMBERS = """
    two                     zwei
    three                   drei
    four                    vier
    five                    fünf
    six                     sechs
    seven                   sieben
    eight                   acht
    nine                    neun
    """
_TENS = """
    twenty                  zwanzig
    thirty                  dreißig
    forty                   vierzig
    fifty                   fünfzig
    sixty                   sechzig
    seventy                 siebzig
    eighty                  achtzig
    ninety                  neunzig
    """


def _adverbs(table):
    return tuple(Adverb(english, german, tuple(" ".join(tenses).split())) for english, german, *tenses in rows(table))


def _numbers():
    """Two to nine, the tens, and twenty-two (zweiundzwanzig) to ninety-nine."""
    units, tens = list(rows(_NUMBERS)), list(rows(_TENS))
    compounds = [(f"{ten}-{unit}", f"{einer}und{zehner}") for ten, zehner in tens for unit, einer in units]
    return tuple(Determiner(english, german, "bare") for english, german in units + tens + compounds)


TIMES, FREQUENCIES, COMMENTS = _adverbs(_TIMES), _adverbs(_FREQUENCIES), _adverbs(_COMMENTS)
QUESTION_ADVERBS = _adverbs(_QUESTIONS)
CONJUNCTIONS = tuple(Conjunction(english, german) for english, german in rows(_CONJUNCTIONS))
THAT, WHETHER, WHY = Conjunction("that", "dass"), Conjunction("whether", "ob"), Conjunction("why", "warum")
MODALS = tuple(
    Modal(english, past[0] if past else "", german, negatable=english not in ("must", "may"))
    for english, german, *past in rows(_MODALS)
)
WILL = Modal("will", "", "werden")
NUMBERS = _numbers()
