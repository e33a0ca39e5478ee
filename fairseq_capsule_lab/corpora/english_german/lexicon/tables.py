"""Read the tables."""

import re
from typing import Dict, Iterator, List, Set, Tuple

from fairseq_capsule_lab.corpora.english_german import english_forms, german_forms
from fairseq_capsule_lab.corpora.english_german.lexemes import EnglishVerb, GermanVerb, Preposition


def rows(table: str) -> Iterator[List[str]]:
    """The columns of each line that is not empty and not a comment."""
    for line in table.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            yield re.split(r"\s{2,}", line.strip())


def notes(columns: List[str], known: Set[str]) -> Dict[str, str]:
    """The third column, `un ness noun=translation`, as a dictionary. A note without a value maps to an empty text."""
    pairs = [note.partition("=") for note in (columns[2].split() if len(columns) > 2 else [])]
    unknown = {name for name, _, _ in pairs} - known
    if unknown:
        raise ValueError(f"{columns[0]}: unknown note {sorted(unknown)[0]!r}; known: {', '.join(sorted(known))}")
    return {name: value for name, _, value in pairs}


def english_verb(text: str) -> EnglishVerb:
    """`write/wrote/written`, `turn on`: base, past and participle if irregular, particle."""
    word, _, particle = text.partition(" ")
    base, *past_and_participle = word.split("/")
    past, participle = past_and_participle or [english_forms.with_suffix(base, "ed")] * 2
    return EnglishVerb(base, past, participle, particle)


def german_verb(text: str) -> GermanVerb:
    """`an+rufen/ruft/rief/gerufen`, `folgen sein`: infinitive, present, past, participle if strong, auxiliary."""
    word, _, auxiliary = text.partition(" ")
    citation, *forms = word.split("/")
    prefix, _, infinitive = citation.rpartition("+")
    if forms:
        return GermanVerb(prefix, infinitive, *forms, auxiliary=auxiliary or "haben")
    return german_forms.regular_verb(prefix, infinitive, auxiliary or "haben")


def governed(english: str, german: str) -> Tuple[Preposition, ...]:
    """The preposition that a verb governs, such as `for` and `auf accusative`, if any."""
    return (Preposition(english, *german.split()),) if english else ()
