"""Subwords as text, and how near a translation is to a reference."""

from typing import NamedTuple, Sequence

from fairseq.data.data_utils import post_process
from fairseq.hub_utils import GeneratorHubInterface
from sacrebleu.metrics import BLEU, CHRF
from torch import Tensor

# sacrebleu's tokenisers of languages without spaces that need no further package; of all others its default.
TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char"}


class SentenceScore(NamedTuple):
    """sacrebleu's scores of one sentence, from 0 to 100: BLEU of effective order, and chrF."""

    bleu: float
    chrf: float


def score_of(translation: str, reference: str, language: str) -> SentenceScore:
    """The scores of a translation into a language, as `de`."""
    bleu = BLEU(effective_order=True, tokenize=TOKENIZERS.get(language, "13a"))
    return SentenceScore(
        bleu.sentence_score(translation, [reference]).score, CHRF().sentence_score(translation, [reference]).score
    )


def text_of(hub: GeneratorHubInterface, tokens: Tensor) -> str:
    """Target tokens as text; subwords are joined also where the hub was not told of any."""
    return joined(hub.decode(tokens))


def plain(words: Sequence[str]) -> str:
    """A line of subwords, end of sentence included, as text."""
    return joined(" ".join(words[:-1]))


def joined(line: str) -> str:
    """A line of subword-nmt's subwords, or of SentencePiece's, as text."""
    return post_process(line, "sentencepiece" if "▁" in line else "subword_nmt")
