"""Subwords as text, and scores of a translation against a reference."""

from typing import NamedTuple, Sequence

from fairseq.data.data_utils import post_process
from fairseq.hub_utils import GeneratorHubInterface
from sacrebleu.metrics import BLEU, CHRF
from torch import Tensor

from fairseq_capsule_lab.evaluation.scores import rules_of
from fairseq_capsule_lab.evaluation.translations import subwords_of

# sacrebleu's tokenisers for languages without spaces that need no other package. Other languages use its default.
TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char"}


class SentenceScore(NamedTuple):
    """sacrebleu's scores of one sentence, from 0 to 100: BLEU with effective order, and chrF."""

    bleu: float
    chrf: float


def score_of(translation: str, reference: str, language: str) -> SentenceScore:
    """The scores of a translation into a language such as `de` or `zh_CN`."""
    bleu = BLEU(effective_order=True, tokenize=TOKENIZERS.get(rules_of(language), "13a"))
    return SentenceScore(
        bleu.sentence_score(translation, [reference]).score, CHRF().sentence_score(translation, [reference]).score
    )


def text_of(hub: GeneratorHubInterface, tokens: Tensor) -> str:
    """Target tokens as text. Subwords are joined also if the hub has no subword settings."""
    return joined(hub.decode(tokens))


def plain(words: Sequence[str]) -> str:
    """A line of subwords, with end of sentence, as text."""
    return joined(" ".join(words[:-1]))


def joined(line: str) -> str:
    """A line of subwords of subword-nmt or SentencePiece as text."""
    return post_process(line, subwords_of([line]))
