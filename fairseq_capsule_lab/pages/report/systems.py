"""Read evaluated runs, and refuse runs that cannot be compared."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines
from capsule_routing.text.folders import language_pairs, settings_of
from fairseq_capsule_lab.evaluation import translations
from fairseq_capsule_lab.evaluation.json_files import read_object, reading
from fairseq_capsule_lab.evaluation.translations import TOKENISED, Translations, read_translations
from fairseq_capsule_lab.runs import RunFolder
from fairseq_capsule_lab.runs.folder import Evaluation
from fairseq_capsule_lab.runs.training_log import Curve, read_curves


class Scoring(NamedTuple):
    """How a run was evaluated: in words for messages; the references; if by ROUGE; if without case; how to read it;
    the --bleu-tokenizer.
    """

    in_words: Tuple[str, ...]
    references: List[str]
    summaries: bool
    lowercase: bool
    tokenised: Optional[bool]
    remove_bpe: Optional[str]
    bleu_tokeniser: Optional[str]


@dataclass(frozen=True)
class System:
    """One run on the page.

    `facts`: settings that make scores hard to compare where they differ. `curves`: one for each validation measure.
    """

    name: str
    translations: Translations
    facts: Dict[str, str]
    curves: Dict[str, Curve]


@dataclass(frozen=True)
class TestSet:
    """The test set on which all runs were evaluated.

    Attributes:
        language: of the references.
        sources: the sources of the test set; if it has none, those that the models read, subwords joined.
        summaries, lowercase: whether the measure is ROUGE, not BLEU, and whether case was ignored.
        bleu_tokeniser: a tokeniser that was given for BLEU.
    """

    split: str
    language: str
    sources: List[str]
    references: List[List[str]]
    summaries: bool
    lowercase: bool
    bleu_tokeniser: Optional[str] = None

    __test__ = False  # pytest must not collect this class


def read_systems(
    runs: Sequence[Path],
    names: Sequence[str],
    data: Path,
    split: str = "test",
    results: str = "evaluation",
) -> tuple[TestSet, List[System]]:
    """Read the results of evaluate.sh for every run.

    Args:
        data: the folder of a prepare script; its `raw` has the references.

    Raises:
        UserError: a run is damaged, was not evaluated on this split, or differs from the first run in test set, measure
            or case.
    """
    evaluations = [_evaluation(run, data, split, results) for run in runs]
    scorings = [_scoring(evaluation) for evaluation in evaluations]
    first = scorings[0]
    for run, scoring in zip(runs[1:], scorings[1:]):
        for ours, theirs in zip(scoring.in_words, first.in_words):
            if ours != theirs:
                raise UserError(f"{run}: evaluated {ours}, but {runs[0]} {theirs}; evaluate both in the same way")
    paths = [data / "raw" / name for name in first.references]
    for path in paths:
        if not path.is_file():
            advice = "give their data folder with --data"
            raise UserError(f"{path}: missing, but the runs were evaluated against it; {advice}")
    references = [read_lines(path) for path in paths]
    systems = []
    for name, run, evaluation, scoring in zip(names, runs, evaluations, scorings):
        kind = (False, "characters") if first.summaries else (scoring.tokenised,)
        output = read_translations(evaluation.translations, scoring.remove_bpe, *kind)
        _require_same_text(run, output, paths[0], references)
        systems.append(System(name, output, _facts(RunFolder(run), evaluation), read_curves(run / "train.log")))
    language = paths[0].name.rpartition(".")[2]
    source_language = _source_language(runs[0], data)
    raw = data / "raw" / f"{split}.{source_language}"
    sources = systems[0].translations.sources
    if source_language and raw.is_file() and len(lines := read_lines(raw)) == len(references[0]):
        sources = lines
    measured = (first.summaries, first.lowercase, first.bleu_tokeniser)
    return TestSet(split, language, sources, references, *measured), systems


def _evaluation(run: Path, data: Path, split: str, results: str) -> Evaluation:
    evaluation = RunFolder(run).evaluation(split, results)
    if not evaluation.scores_file.is_file():
        others = sorted(path.parent.name for path in run.glob(f"{results}/*/scores.json"))
        advice = f"it has {', '.join(others)}; choose one with --split, or run" if others else "run"
        raise UserError(f"{run}: not evaluated on '{split}'; {advice} scripts/evaluate.sh --split {split} {run} {data}")
    return evaluation


def _scoring(evaluation: Evaluation) -> Scoring:
    scores = read_object(evaluation.scores_file) or {}
    with reading(evaluation.scores_file):
        references = [Path(path).name for path in scores["references"]]
        measures = scores["scores"]
        summaries = "rouge1" in measures
        lowercase = any("case:lc" in str(score.get("signature")) for score in measures.values())
        tokeniser = scores.get("bleu_tokenizer")
        in_words = (
            f"against {' '.join(references)}",
            f"by {'ROUGE' if summaries else 'BLEU and chrF'}",
            f"with {tokeniser or 'the default'} as the tokeniser of BLEU",
            f"{'without' if lowercase else 'with'} case",
        )
        tokenised = TOKENISED[scores.get("tokenized", "auto")]
        return Scoring(in_words, references, summaries, lowercase, tokenised, scores.get("remove_bpe"), tokeniser)


def _require_same_text(run: Path, output: Translations, path: Path, references: Sequence[Sequence[str]]) -> None:
    count = len(output.sentences)
    if not output.sources:
        raise UserError(f"{output.path}: no S- lines; run scripts/evaluate.sh on {run} again")
    if any(len(lines) != count for lines in references):
        problem = f"{count} translations, but {path} has {len(references[0])} lines"
        raise UserError(f"{run}: {problem}; evaluate the same test set")
    if 2 * translations.disagreements(output, references) > count:
        raise UserError(f"{run}: evaluated on another text than {path}; evaluate all runs on the same test set")


def _source_language(run: Path, data: Path) -> str:
    """The source language of a run's settings, or as in evaluate.sh of the binarised files' names; "" without both."""
    with contextlib.suppress(UserError):
        if stated := RunFolder(run).settings().get("task.source_lang"):
            return stated
    return next(iter(language_pairs(data / "bin")), ("", ""))[0]


def _facts(folder: RunFolder, evaluation: Evaluation) -> Dict[str, str]:
    starts = folder.manifest()["starts"]
    decoding = settings_of(evaluation.path)  # what evaluate.sh recorded
    facts = {
        "beam": decoding.get("beam"),
        "length penalty": decoding.get("lenpen"),
        "batch": starts[0].get("batch") if starts else None,
        "updates": folder.last_update,
        "data": folder.settings().origin.get("data"),
    }
    return {name: str(value) for name, value in facts.items() if value}
