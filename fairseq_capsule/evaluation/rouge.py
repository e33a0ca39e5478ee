"""ROUGE over characters, for text without spaces between words; computed by rouge-score."""

import re
from typing import Dict, List, Sequence

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
# A word that the model does not know is one token; ▁ is how a space is written where characters are apart.
_CHARACTER = re.compile(r"<unk>|[^\s▁]")


class CharacterTokenizer:
    """rouge-score's own tokeniser keeps Latin letters and digits alone."""

    def tokenize(self, text: str) -> List[str]:
        """All characters but spaces."""
        return _CHARACTER.findall(text)


class CharacterRouge:
    """ROUGE-1, ROUGE-2 and ROUGE-L of single sentences."""

    def __init__(self) -> None:
        # Imported here: it brings nltk, which takes more than a second, and most commands need none of it.
        from rouge_score.rouge_scorer import RougeScorer

        self._scorer = RougeScorer(ROUGE_TYPES, tokenizer=CharacterTokenizer())

    def f1(self, hypothesis: str, references: Sequence[str]) -> Dict[str, float]:
        """F1 of each type, from 0 to 1; of several references each type takes the best one."""
        scores = self._scorer.score_multi(references, hypothesis)
        return {name: score.fmeasure for name, score in scores.items()}
