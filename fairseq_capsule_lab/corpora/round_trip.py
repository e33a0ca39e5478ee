"""What a tokeniser leaves of a language: the BLEU of text that was tokenised and detokenised.

It is the BLEU of a perfect translation, as a user scores it: against the raw text. Moses knows European punctuation. It
makes typographic quotes straight, separates the apostrophes within Ukrainian words and the joiners of Persian, and
nothing restores them.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from capsule_routing.text.languages import bleu, has_spaces, has_words
from capsule_routing.text.preparation import TextPreparation, compose, lower

LEAST = 98.0  # BLEU of a language that Moses keeps; those that it knows have 99
SAMPLE = 1000  # lines, at least; a longer sample changes the figure little

Line = TypeVar("Line")


def round_trip(text: TextPreparation, lines: Iterable[str]) -> float:
    """Return the BLEU of lines that a tokeniser changed to words and back, against the lines.

    Case counts unless the text is lower-cased. It is 0 where Moses finds no words, because no spaces separate them.
    """
    lines = list(lines)
    if text.tokenizer == "moses" and not has_spaces(text.language) and not has_words(lines):
        return 0.0
    texts = [compose(line) for line in lines]
    returned = [text.decode(text.words(line)) for line in texts]
    if text.lower:
        texts = [lower(text.language, line) for line in texts]
    # Some texts have no line of four words.
    metric = bleu(text.language if text.tokenizer == "jieba" else "en", effective_order=True, force=True)
    return metric.corpus_score(returned, [texts]).score if texts else 100.0


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
