"""Word classes and their forms. A blank separates what is aligned word by word, `_` joins what is aligned as one."""

import re
from typing import Dict, Iterator, NamedTuple, Sequence, Tuple

CASES = ("nominative", "accusative", "dative", "genitive")
_VOWELS = re.compile("[aeiouyäöü]+", re.IGNORECASE)


def with_suffix(word: str, suffix: str) -> str:
    """Add a suffix that begins with a vowel: bak|er, bigg|er, carri|ed, fly|ing."""
    if word.endswith("e") and not (word.endswith("ee") and suffix[0] != "e"):
        return word[:-1] + suffix
    if re.search("[^aeiou]y$", word) and suffix[0] != "i":
        return word[:-1] + "i" + suffix
    doubled = re.match("^[^aeiouy]*[aeiouy][^aeiouwxy]$", word)  # stop, big
    return word + (word[-1] if doubled else "") + suffix


def with_s(word: str) -> str:
    """The plural of a noun or the third person of a verb."""
    if re.search("(s|x|z|ch|sh)$", word) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"


def _compare(adjective: str, suffix: str, word: str) -> str:
    syllables = len(_VOWELS.findall(re.sub("(?<!l)e$", "", adjective))) - adjective.endswith("y")
    return with_suffix(adjective, suffix) if syllables < 2 else f"{word}_{adjective}"


class Noun(NamedTuple):
    """A noun. `kind` determines its verbs and adjectives. `oblique` is the accusative and dative singular.

    `linking` begins a compound, `small` is the diminutive. They and `plural` are empty if there is none.
    """

    kind: str
    english: Tuple[str, str]  # singular, plural
    gender: str
    german: str
    oblique: str
    genitive: str
    plural: str
    linking: str = ""
    small: str = ""

    def form(self, plural: bool, case: str) -> str:
        """Hund, Hundes, Hunden."""
        if plural:
            return self.plural + "n" * (case == "dative" and self.plural[-1] not in "ns")
        return {"nominative": self.german, "genitive": self.genitive}.get(case, self.oblique)

    def extend(self, english: str, gender: str, *german: str) -> "Noun":
        """The noun with a word before it in English and other forms in German."""
        singular, plural = (f"{english}_{word}" for word in self.english)
        return Noun(self.kind, (singular, plural), gender, *german)


def noun(kind: str, english: str, german: str) -> Noun:
    """Read `mouse/mice`, `die Maus/Mäuse/Mäuse/Mäuschen`. `-e` appends to the singular."""
    english, _, english_plural = english.partition("/")
    the, forms, *weak = german.split()
    word, *others = forms.split("/")
    plural, linking, small = [word + form[1:] if form[0] == "-" else form for form in others] + [""] * (3 - len(others))
    genitive = oblique = plural if weak else word
    if the != "die" and not weak:
        e = len(_VOWELS.findall(word)) == 1 and not plural.endswith("s") or re.search("(s|ß|x|z|sch)$", word)
        genitive = word + ("es" if e else "s")
    gender = {"der": "m", "die": "f", "das": "n"}[the]
    return Noun(
        kind, (english, english_plural or with_s(english)), gender, word, oblique, genitive, plural, linking, small
    )


def compound(english: str, german: str, head: Noun) -> Noun:
    """Kitchen door, Küchentür: the first part in both languages, and the head."""
    return head.extend(english, head.gender, *(german + form.lower() for form in head[3:7]))


class Adjective(NamedTuple):
    """An adjective. `stem` takes the endings: dunkel, ein dunkl-er Wald."""

    degree: str
    english: str
    german: str
    stem: str


def adjectives(english: str, german: str) -> Iterator[Adjective]:
    """Read `old`, `alt/älter/ältest`, with the comparative and superlative unless `-`, and the negative if `un`."""
    forms, *notes = german.split()
    word, *compared = forms.split("/")
    stem = re.sub("e([lr])$", r"\1", word) if word in ("dunkel", "teuer") else re.sub("e$", "", word)
    yield Adjective("positive", english, word, stem)
    if "-" not in notes:
        e = "e" if re.search("(d|t|s|ß|z|sch)$", word) else ""
        more, most = compared or (stem + "er", f"{word}{e}st")
        yield Adjective("comparative", _compare(english, "er", "more"), more, more)
        yield Adjective("superlative", _compare(english, "est", "most"), most, most)
    if "un" in notes:
        yield Adjective("negative", "un" + english, "un" + word, "un" + stem)


def participle(word: "Verb") -> Adjective:
    """The sleeping child, das schlafende Kind; the painted door, die gemalte Tür."""
    english, german = word.english[-1], word.prefix + word.german[-1]
    if word.frame == "intransitive":
        english, german = with_suffix(word.english[0], "ing"), word.prefix + word.german[0] + "d"
    return Adjective("participle", english, german, german)


class Determiner(NamedTuple):
    """A determiner. `pattern` selects its endings and those of adjectives after it: der, dieser, ein, strong, bare."""

    english: str
    german: str
    pattern: str


def _paradigm(table: str) -> Dict[Tuple[str, str], str]:
    """Read the endings of m, f, n and plural, each in the four cases; `-` is no ending."""
    cells = [(gender, case) for gender in ("m", "f", "n", "plural") for case in CASES]
    return {cell: ending.strip("-") for cell, ending in zip(cells, table.split())}


_STRONG = _paradigm("er en em en  e e er er  es es em en  e e en er")
_WEAK = _paradigm("e en en en  e e en en  e e en en  en en en en")
_MIXED = _paradigm("er en en en  e e en en  es es en en  en en en en")
_DIESER = _paradigm("er en em es  e e er er  es es em es  e e en er")
_EIN = _paradigm("- en em es  e e er er  - - em es  e e en er")
_DER = _paradigm("er en em es  ie ie er er  as as em es  ie ie en er")
# pattern of the determiner -> (its own endings, the endings of adjectives after it)
PATTERNS = {
    "der": (_DER, _WEAK), "dieser": (_DIESER, _WEAK), "ein": (_EIN, _MIXED), "strong": (_STRONG, _STRONG),
    "bare": (_paradigm("- " * 16), _STRONG),
}  # fmt: skip
RELATIVE = {cell: "d" + ending for cell, ending in {**_DER, ("plural", "dative"): "enen"}.items()}


class Verb(NamedTuple):
    """A verb with its frame (the constituents that it takes) and the kinds of nouns in them.

    `english`: base, past, participle, and the particle that follows. `german`: infinitive, third person, past,
    participle, without the separable `prefix`. `governs`: the preposition in both languages and its case.
    """

    frame: str
    subjects: Tuple[str, ...]
    objects: Tuple[str, ...]
    english: Tuple[str, ...]
    particle: str
    prefix: str
    german: Tuple[str, ...]
    governs: Tuple[str, ...]
    notes: Tuple[str, ...]

    def english_finite(self, past: bool, person: int, plural: bool) -> str:
        """Sees, saw, am, has."""
        base, third = self.english[0], person == 3 and not plural
        if base == "be" and past:
            return "were" if plural or person == 2 else "was"
        if base == "be":
            return "is" if third else "am" if person == 1 and not plural else "are"
        if past or not third or base in _INVARIABLE:
            return self.english[past]
        return "has" if base == "have" else with_s(base)

    def german_finite(self, past: bool, person: int, plural: bool) -> str:
        """Sehe, sah, without the prefix."""
        infinitive, present, preterite, _ = self.german
        if past and plural:
            return preterite + ("n" if preterite.endswith("e") else "en")
        if past:
            return preterite + ("" if person != 2 else "est" if re.search("[sßzdt]$", preterite) else "st")
        if infinitive == "sein":
            return "sind" if plural else ("bin", "bist", "ist")[person - 1]
        weak = present[-1] in "td"  # kann, muss and weiß have no ending
        if plural or person == 3:
            return infinitive if plural else present
        if person == 1:
            return re.sub("(?<=[^aeiou])el$", "l", _root(infinitive)) + "e" if weak else present
        root = present[:-1] if weak else present
        return root + ("t" if re.search("[sßz]$", root) else "st")


_INVARIABLE = ("will", "can", "must", "should", "may")
HELPERS = ("be", "have", *_INVARIABLE)  # English verbs that stand before `not`, and before the subject of a question


def verb(frame: str, kinds: Sequence[Tuple[str, ...]], english: str, german: str) -> Verb:
    """Read `write/wrote/written`, `turn on`; `an+rufen/ruft/rief/gerufen`, `folgen sein`, `warten auf accusative`."""
    forms, *particle = english.split()
    base, *past = forms.split("/")
    forms, *notes = german.split()
    governs: Tuple[str, ...] = ()
    if len(notes) > 1 and notes[1] in CASES:
        governs, notes = (particle.pop(), *notes[:2]), notes[2:]
    citation, *strong = forms.split("/")
    prefix, _, infinitive = citation.rpartition("+")
    bases = (base, *(past or [with_suffix(base, "ed")] * 2))
    germans = (infinitive, *_weak_forms(infinitive)[: 3 - len(strong)], *strong)
    subjects, objects, *_ = (*kinds, (), ())
    return Verb(frame, subjects, objects, bases, " ".join(particle), prefix, germans, governs, tuple(notes))


def _root(infinitive: str) -> str:
    """The part before personal endings: mal-en, sammel-n."""
    return infinitive[: -2 if infinitive.endswith("en") else -1]


def _weak_forms(infinitive: str) -> Tuple[str, str, str]:
    """Arbeitet, arbeitete, gearbeitet."""
    root = _root(infinitive)
    root += "e" if re.search("[dt]$|[^aeiouäöülrhmn][mn]$", root) else ""
    ge = "" if re.search("^(be|emp|ent|er|ge|ver|zer|über|unter)|ieren$", infinitive) else "ge"
    return root + "t", root + "te", f"{ge}{root}t"


BE = verb("copula", (), "be/was/been", "sein/ist/war/gewesen sein")
DO = verb("do", (), "do/did/done", "tun/tat/getan")
