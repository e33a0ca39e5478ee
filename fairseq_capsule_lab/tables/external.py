"""Reports of runs' sentences that another program scored: in the form of those of `score` and `seeds`.

The scores of a run are in `RUN/evaluation/SPLIT/external/NAME.json`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from fairseq_capsule_lab.evaluation.external import measure_of_scores, read_scores
from fairseq_capsule_lab.evaluation.scores import Measure as Scored
from fairseq_capsule_lab.evaluation.scores import evaluate
from fairseq_capsule_lab.evaluation.seeds import compare_seeds
from fairseq_capsule_lab.tables.measures import Measure
from fairseq_capsule_lab.tables.runs import Places, Run

SAMPLES, SEED = 1000, 12345  # of the bootstrap, as in `fairseq-capsule score`


def report(
    run: Run, other: Optional[Run], split: str, measure: Measure, places: Places
) -> Tuple[Dict[str, Any], Optional[Dict[str, Any]]]:
    """Report the score of a run, and its difference to that of another run, if that has scores.

    Raises:
        LabError: the run's file is missing, or a file has other contents.
    """
    ours, *theirs = (file_of(each, split, measure, places) for each in (run, other) if each)
    files = [ours, *(file for file in theirs if file.is_file())]
    scores = {"scores": {measure.score: asdict(evaluate(_scored(measure, files), SAMPLES, SEED))}}
    return scores, scores if len(files) > 1 else None


def report_over_seeds(
    runs: List[Tuple[Run, Optional[Run]]], split: str, measure: Measure, places: Places
) -> Optional[Dict[str, Any]]:
    """Report the scores of several seeds and the effect; None if a file is missing.

    Args:
        runs: for each seed, a run and the one that it is compared with.

    Raises:
        LabError: a file has other contents.
    """
    ours, theirs = zip(*runs)
    files = [file_of(run, split, measure, places) for run in (*theirs, *ours)]
    if not all(file.is_file() for file in files):
        return None
    return {"scores": {measure.score: [asdict(each) for each in compare_seeds(_scored(measure, files), len(runs))]}}


def file_of(run: Run, split: str, measure: Measure, places: Places) -> Path:
    return places.folder(run).evaluation(split).external(str(measure.score))


def _scored(measure: Measure, files: List[Path]) -> Scored:
    name = str(measure.score)
    return measure_of_scores(name, "scores of another program", [read_scores(name, file) for file in files])
