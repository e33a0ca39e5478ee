"""ROUGE of summaries as a sacrebleu metric, so that its paired bootstrap can compare two systems."""

from importlib.metadata import version
from typing import Any, Dict, Iterator, List, Sequence

from sacrebleu.metrics.base import Metric, Score, Signature

from fairseq_capsule.data.rouge import ROUGE_TYPES, CharacterRouge
from fairseq_capsule_lab.evaluation.scoring import Measure
from fairseq_capsule_lab.evaluation.translations import Translations

LABELS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


class _Signature(Signature):
    def __init__(self, args: Dict[str, Any]):
        super().__init__(args)
        self.update("type", args["rouge_type"])
        self.update("case", "lc" if args["lowercase"] else "mixed")
        self.update("tok", "char")
        self.update("version", f"rouge-score-{version('rouge-score')}")


class Rouge(Metric):
    """F1 of one ROUGE type over characters: the mean over sentences, times 100."""

    _SIGNATURE_TYPE = _Signature

    def __init__(self, rouge_type: str, lowercase: bool = False):
        super().__init__()
        self.rouge_type = rouge_type
        self.lowercase = lowercase
        self._rouge = CharacterRouge()

    def _preprocess_segment(self, sent):
        return sent.lower() if self.lowercase else sent

    def _extract_reference_info(self, refs):
        return {"references": [self._preprocess_segment(reference) for reference in refs]}

    def _compute_segment_statistics(self, hypothesis, ref_kwargs):
        return [self._rouge.f1(hypothesis, ref_kwargs["references"])[self.rouge_type], 1]

    def _aggregate_and_compute(self, stats):
        return self._compute_score_from_stats([sum(column) for column in zip(*stats)])

    def _compute_score_from_stats(self, stats):
        f1, sentences = stats
        return Score(LABELS[self.rouge_type], 100 * f1 / sentences)


def rouge_measures(
    systems: Sequence[Translations], references: Sequence[Sequence[str]], lowercase: bool = False
) -> Iterator[Measure]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of one or more systems against the raw references."""
    plain_systems: List[List[str]] = [system.sentences for system in systems]
    plain_references = [list(reference) for reference in references]
    for name in ROUGE_TYPES:
        metric = Rouge(name, lowercase)
        yield Measure(name, f"{LABELS[name]} F1", "characters", metric, plain_systems, plain_references)
