"""Measures of a run: for each, its source, and where the figure is in the JSON object that the source prints."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any, Callable, Dict, Optional

from capsule_routing.text.rouge import ROUGE_TYPES
from fairseq_capsule_lab.evaluation.json_files import finite


@dataclass(frozen=True)
class RunMeasure:
    """One measure.

    Attributes:
        source: the key of its command in `sources.SOURCES`; None for the scores of evaluate.sh.
        read: finds the figure in the object.
        score: the name of a score of evaluate.sh.
        compared: its figure is compared with that of the other row, seed by seed.
        by_words: it has several figures, by the number of source words.
    """

    source: Optional[str]
    read: Callable[[Dict[str, Any]], Any]
    digits: int = 2
    score: Optional[str] = None
    compared: bool = False
    by_words: bool = False

    def figures(self, printed: Dict[str, Any]) -> Dict[str, float]:
        """The figures in an object by the number of source words; by "" if there is one. Errors as in `finite`."""
        figures = self.read(printed) if self.by_words else {"": self.read(printed)}
        return {point: finite(figure) for point, figure in figures.items()}


def _score(name: str) -> RunMeasure:
    return RunMeasure(None, lambda printed: printed["scores"][name]["score"], score=name)


def _row(key: str, factor: float = 1.0) -> Callable[[Dict[str, Any]], float]:
    return lambda printed: factor * printed["rows"][0][key]


def _statistic(name: str, factor: float = 1.0) -> Callable[[Dict[str, Any]], float]:
    """A figure of `analyze routing`."""
    return lambda printed: factor * next(row["value"] for row in printed["rows"] if row["statistic"] == name)


def _changed(sign: int) -> Callable[[Dict[str, Any]], float]:
    """The share of the sentences, in percent, that a run translates better (1) or worse (-1) than its baseline."""
    return lambda printed: 100 * fmean(sign * row["difference"] > 0 for row in printed["rows"])


def _by_words(key: str) -> Callable[[Dict[str, Any]], Dict[str, float]]:
    return lambda printed: {row["words"]: row[key] for row in printed["rows"]}


MEASURES: Dict[str, RunMeasure] = {
    "bleu": _score("tokenised_bleu"),
    "bleu_without_diacritics": _score("tokenised_bleu_without_diacritics"),
    **{name: _score(name) for name in ("compound_split_bleu", "detokenised_bleu", "chrf", *ROUGE_TYPES)},
    "parameters": RunMeasure("size", lambda printed: printed["models"][0]["parameters"], 0),
    "parameters_without_embeddings": RunMeasure(
        "size", lambda printed: printed["models"][0]["parameters"] - printed["models"][0]["embeddings"], 0
    ),
    "nll": RunMeasure("nll", _row("nll"), 3, compared=True),
    # With guided losses if the architecture has them.
    "speed_train": RunMeasure(
        "throughput-train", lambda printed: printed["ratios"].get(f"{printed['arch']} + losses", printed["ratio"])
    ),
    "speed_generate": RunMeasure("throughput-generate", lambda printed: printed["ratio"]),
    "latency": RunMeasure("latency", lambda printed: printed["milliseconds"][printed["archs"][0]]["mean"], 1),
    "latency_ratio": RunMeasure("latency", lambda printed: printed["speedup"][printed["archs"][0]]),
    **{
        f"probe{top}": RunMeasure("probe", _row(f"bag_recall_{top}", 100), 1, compared=True) for top in (200, 500, 1000)
    },
    "cdr": RunMeasure("coverage", _row("cdr"), 3, compared=True),
    "over_translation": RunMeasure("coverage", _row("over")),
    "under_translation": RunMeasure("coverage", _row("under")),
    # The first row is about the whole target.
    "overlap_past": RunMeasure("overlap", _row("past"), 3),
    "overlap_future": RunMeasure("overlap", _row("future"), 3),
    # The rows are the model, its cross-attention, and the position alone.
    "assignment_over_position": RunMeasure("assignment", lambda of: of["rows"][0]["area"] - of["rows"][2]["area"], 3),
    "attention_entropy_before": RunMeasure("attention", _statistic("attention_before"), 3),
    "attention_entropy": RunMeasure("attention", _statistic("attention_after"), 3),
    "moved_words": RunMeasure("past-future", _statistic("past_future_moved", 100), 1),
    "capsule_entropy": RunMeasure("capsules", _statistic("aggregation_entropy"), 3),
    "better_sentences": RunMeasure("cases", _changed(1), 1),
    "worse_sentences": RunMeasure("cases", _changed(-1), 1),
    "bleu_by_length": RunMeasure("lengths", _by_words("bleu"), by_words=True),
    "ratio_by_length": RunMeasure("lengths", _by_words("length_ratio"), 3, by_words=True),
    "bleu_by_length_group": RunMeasure("length-groups", _by_words("bleu"), by_words=True),
    "bleu_longer_than": RunMeasure("longer-than", _by_words("bleu"), by_words=True),
}
RATIOS = ("speed_train", "speed_generate", "latency_ratio")
