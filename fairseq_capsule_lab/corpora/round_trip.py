"""What Moses leaves of a language: the BLEU of text that was tokenised and detokenised.

Moses knows European punctuation. It separates the apostrophes within Ukrainian words, the marks of Thai and the joiners
of Persian, and nothing joins them again, so that even a perfect translation scores low.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from capsule_routing.text.preparation import detokenise, moses, printable

LEAST = 98.0  # BLEU of a language that Moses keeps; those that it knows have 99
SAMPLE = 1000  # lines, at least; a longer sample changes the figure little

Line = TypeVar("Line")


def round_trip(language: str, lines: Iterable[str]) -> float:
    """Return the BLEU of lines after Moses' tokeniser and detokeniser, against their text with normalised punctuation.

    Moses normalises the punctuation of every language, so this is no damage to the language.
    """
    from sacrebleu.metrics import BLEU

    language = language.partition("_")[0]
    texts = [printable(moses(language).normalise(line)) for line in lines]
    returned = [detokenise(language, moses(language, normalises=False).words(text)) for text in texts]
    # Some texts have no line of four words.
    return BLEU(effective_order=True, force=True).corpus_score(returned, [texts]).score if texts else 100.0


def evenly_spaced(lines: Iterable[Line]) -> Sequence[Line]:
    """Return SAMPLE to 2 * SAMPLE lines at equal distances, or all lines of a shorter text."""
    sample: list[Line] = []
    step = 1
    for number, line in enumerate(lines):
        if number % step == 0:
            sample.append(line)
        if len(sample) == 2 * SAMPLE:
            sample = sample[::2]
            step *= 2
    return sample
