"""ROUGE over characters, for text without spaces between words, computed by rouge-score."""

import re
from typing import Dict, List, Sequence

from capsule_routing.errors import missing_library

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
# An unknown word is one token. In text that is split into characters, ▁ stands for a space.
_CHARACTER = re.compile(r"<unk>|[^\s▁]")


class CharacterTokenizer:
    """A tokeniser into characters. The default tokeniser of rouge-score drops all but Latin letters and digits."""

    def tokenize(self, text: str) -> List[str]:
        """All characters except spaces."""
        return _CHARACTER.findall(text)


class CharacterRouge:
    """ROUGE-1, ROUGE-2 and ROUGE-L of single sentences. A UserError says if rouge-score is not installed."""

    def __init__(self) -> None:
        # Imported here because it imports nltk, which takes over a second and which most commands do not need.
        try:
            from rouge_score.rouge_scorer import RougeScorer
        except ModuleNotFoundError as error:
            raise missing_library(error) from error

        self._scorer = RougeScorer(ROUGE_TYPES, tokenizer=CharacterTokenizer())

    def f1(self, hypothesis: str, references: Sequence[str]) -> Dict[str, float]:
        """F1 of each type, from 0 to 1. With several references, each type uses the best one."""
        scores = self._scorer.score_multi(references, hypothesis)
        return {name: score.fmeasure for name, score in scores.items()}
