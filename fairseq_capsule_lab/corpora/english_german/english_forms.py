"""English spelling: the regular forms of nouns, verbs and adjectives."""

import re

_VOWEL_GROUP = re.compile("[aeiouy]+")
_SIBILANT = re.compile("(s|x|z|ch|sh)$")
_SHORT = re.compile("^[^aeiouy]*[aeiouy][^aeiouwxy]$")  # stop, plan, big: the final consonant is doubled
_VOWEL_SOUND = re.compile("^(?!us|eu|one|uni(que|form|vers))[aeiou]|^(hour|honest)", re.IGNORECASE)


def syllables(word: str) -> int:
    """The number of spoken syllables, without a final silent -e."""
    return max(1, len(_VOWEL_GROUP.findall(re.sub("(?<!l)e$", "", word))))


def with_suffix(word: str, suffix: str) -> str:
    """Add a suffix that begins with a vowel: bake|r, swimm|er, carri|ed, fly|ing."""
    if word.endswith("e") and not (word.endswith("ee") and suffix[0] != "e"):
        return word[:-1] + suffix
    if re.search("[^aeiou]y$", word) and not suffix.startswith("i"):
        return word[:-1] + "i" + suffix
    return word + (word[-1] if _SHORT.match(word) else "") + suffix


def with_s(word: str) -> str:
    """The plural of a noun or the third person of a verb."""
    if _SIBILANT.search(word) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"


def with_ly(adjective: str) -> str:
    """The adverb of an adjective: slow|ly, happi|ly."""
    return (adjective[:-1] + "i" if adjective.endswith("y") else adjective) + "ly"


def with_ness(adjective: str) -> str:
    """The quality noun of an adjective: dark|ness, lazi|ness, shy|ness."""
    changes = adjective.endswith("y") and syllables(adjective) > 1
    return (adjective[:-1] + "i" if changes else adjective) + "ness"


def comparative(adjective: str) -> str:
    """Bigger, but more famous."""
    return with_suffix(adjective, "er") if _compares_by_ending(adjective) else "more " + adjective


def superlative(adjective: str) -> str:
    """Biggest, but most famous."""
    return with_suffix(adjective, "est") if _compares_by_ending(adjective) else "most " + adjective


def indefinite_article(next_word: str) -> str:
    """`a` or `an`, by the sound that follows."""
    return "an" if _VOWEL_SOUND.match(next_word) else "a"


def _compares_by_ending(adjective: str) -> bool:
    return syllables(adjective) == 1 or (adjective.endswith("y") and syllables(adjective) == 2)
