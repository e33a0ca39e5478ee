"""Collect our figures of a table from the folders of its runs. Nothing here takes long to compute."""

import math
import re
import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from fairseq_capsule.errors import one_line
from fairseq_capsule_lab.analysis.reports import escaped
from fairseq_capsule_lab.evaluation.seeds import Effect, effect, holm
from fairseq_capsule_lab.runs import finite_number, read_report, reading
from fairseq_capsule_lab.tables import external
from fairseq_capsule_lab.tables.definitions import Column, Table
from fairseq_capsule_lab.tables.measures import SCORED, TIMED, applies, measure_of, require_measures
from fairseq_capsule_lab.tables.runs import Places, Run, compared_runs
from fairseq_capsule_lab.tables.scales import Scale, Setting


@dataclass(frozen=True)
class Figures:
    """Our figures of one row and column.

    Attributes:
        values: one for each seed.
        differences: to the row that it is compared with, for each seed where both have a figure.
        ps: the p of each difference, by paired bootstrap.
        effect: the difference as a mean over several seeds, with its interval and p; None for one seed.
        missing: why there is no figure; empty if the row cannot have one.
    """

    values: Tuple[float, ...] = ()
    differences: Tuple[float, ...] = ()
    ps: Tuple[float, ...] = ()
    effect: Optional[Effect] = None
    missing: Optional[str] = None

    @property
    def mean(self) -> Optional[float]:
        return statistics.mean(self.values) if self.values else None

    @property
    def spread(self) -> Optional[float]:
        """The standard deviation over seeds."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> Optional[float]:
        if self.effect:
            return self.effect.difference
        return statistics.mean(self.differences) if self.differences else None


# Figures of one column by the number of source words; the key is "" for a column with one figure.
Points = Dict[str, Figures]
# A run's figures by the same keys, their difference to the other run's figure, and p.
Found = Tuple[Dict[str, float], Optional[float], Optional[float]]


@dataclass(frozen=True)
class Results:
    """All figures of a table.

    Attributes:
        cells: for each row, its points in each column.
        labels: for each column, the name and signature of its scores, if it has scores.
        stands_in: for each column, the corpus that replaces the paper's, if another one does, and the test sets that
            it lacks.
    """

    table: Table
    scale: Scale
    cells: Dict[str, Tuple[Points, ...]]
    labels: Tuple[Optional[str], ...]
    stands_in: Tuple[Optional[str], ...]


def gather(table: Table, scale: Scale, places: Places) -> Results:
    """Collect the figures of every seed that has a folder.

    Raises:
        LabError: a run has a link or a pipe, or a report that exists and cannot be read.
        LabError: the table has an unknown measure or configuration.
    """
    require_measures(table)
    places.require_plain(scale)
    seeds = trained_seeds(scale, places)
    cells: Dict[str, Tuple[Points, ...]] = {}
    labels: List[Optional[str]] = [None] * len(table.columns)
    for row in table.to_run():
        points = []
        for number, column in enumerate(table.columns):
            runs = list(dict.fromkeys(compared_runs(table, row, column, scale, seed, places) for seed in seeds))
            points.append(_points(runs, column, places))
            labels[number] = labels[number] or _label(runs, column, places)
        cells[row.label] = tuple(points)
    for number in range(len(table.columns)):
        _correct(cells, number)
    settings = [scale.setting(table.paper, column.corpus[0], big=False) for column in table.columns]
    stands_in = tuple(map(_stand_in, table.columns, settings))
    return Results(table, scale, cells, tuple(labels), stands_in)


def trained_seeds(scale: Scale, places: Places) -> List[int]:
    """The seeds that a run at this scale has a folder for, or 1."""
    folders = (places.runs / scale.name).glob("*/*/seed*")
    return sorted({int(found[1]) for path in folders if (found := re.fullmatch(r"seed(\d+)", path.name))}) or [1]


def _stand_in(column: Column, setting: Setting) -> Optional[str]:
    missing = [split for split in column.splits if split not in setting.splits]
    without = f" (without {', '.join(missing)})" if missing else ""
    return setting.configs + without if setting.stands_in else None


def _points(runs: List[Tuple[Run, Optional[Run]]], column: Column, places: Places) -> Points:
    found: List[Found] = []
    scored: List[Tuple[Run, Optional[Run]]] = []
    reasons: List[str] = []
    for run, other in runs:
        if not applies(column.measure, run):
            return {"": Figures(missing="")}
        is_scored = measure_of(column.measure).score
        figure = (_score if is_scored else _compared_report)(run, other, column, places)
        if isinstance(figure, str):
            reasons.append(figure)
        else:
            found.append(figure)
            scored.append((run, other))
    if not found:
        return {"": Figures(missing=reasons[0])}
    values, *tests = zip(*found)
    differences, ps = (tuple(x for x in kind if x is not None) for kind in tests)
    points = dict.fromkeys(point for value in values for point in value)
    over_seeds = None
    if len(scored) > 1 and measure_of(column.measure).score:
        over_seeds = _effect(scored, column, places)
    elif len(differences) == len(scored) > 1:
        over_seeds = effect(np.array(differences), error_over_sentences=0)
    return {
        point: Figures(tuple(v[point] for v in values if point in v), differences, ps, over_seeds) for point in points
    }


def _effect(runs: List[Tuple[Run, Optional[Run]]], column: Column, places: Places) -> Optional[Effect]:
    """The effect over seeds and sentences, as a mean over the splits; None if these seeds have not been compared."""
    measure, (run, other) = measure_of(column.measure), runs[0]
    if other is None:
        return None
    folder = places.runs / run.compared_folder(other, [run.seed for run, _ in runs])
    differences, errors = [], []
    for split in (split for split in column.splits if split in run.setting.splits):
        path = folder / f"{split}.json"
        if measure.external:
            report = external.report_over_seeds(runs, split, measure, places)
        else:
            report = read_report(path)
        if report is None:
            return None
        with reading(path):
            theirs, ours = report["scores"][measure.score]
            pairs = [
                finite_number(our) - finite_number(their)
                for our, their in zip(ours["scores"], theirs["scores"], strict=True)
            ]
            errors.append(finite_number(ours["effect"]["error_over_sentences"]))
        if len(pairs) != len(runs):
            return None
        differences.append(pairs)
    return effect(np.mean(differences, axis=0), math.hypot(*errors) / len(errors))


def _correct(cells: Dict[str, Tuple[Points, ...]], number: int) -> None:
    """Correct the p of all effects of a column for their number."""
    effects = [(row[number], figures.effect) for row in cells.values() if (figures := row[number].get("")) is not None]
    corrected = [(points, found) for points, found in effects if found]
    for (points, _), found in zip(corrected, holm([found for _, found in corrected])):
        points[""] = replace(points[""], effect=found)


def _score(run: Run, other: Optional[Run], column: Column, places: Places) -> Union[str, Found]:
    """The mean over the splits that the corpus has, its difference to the other run's, and p if there is one split."""
    measure, folder = measure_of(column.measure), places.folder(run)
    values, tests = [], []
    splits = [split for split in column.splits if split in run.setting.splits]
    if not splits:
        return f"{run.setting.data} has no split {', '.join(column.splits)}"
    for split in splits:
        scores = folder.evaluation(split).scores()
        if scores is None:
            return _untrained(run, places) or _reason(folder.path, f"evaluate-{split}") or f"{split} is not scored"
        compared, path = None, folder.evaluation(split).scores_file
        if other:
            path_of_comparison = places.runs / run.compared_folder(other, [run.seed]) / f"{split}.json"
            compared = read_report(path_of_comparison)
        if measure.external:
            file = external.file_of(run, split, measure, places)
            if not file.exists():
                return f"{file}: No such file or directory; name the file of the scores"
            scores, compared = external.report(run, other, split, measure, places)
        with reading(path):
            values.append(finite_number(measure.read(scores)))
        if compared:
            with reading(path_of_comparison):
                test = compared["scores"][measure.score]["against"]
                p = test["p"]  # None if both scores are equal
                tests.append((finite_number(test["difference"]), None if p is None else finite_number(p)))
    whole = len(tests) == len(values)
    difference = statistics.mean(difference for difference, _ in tests) if whole else None
    return {"": statistics.mean(values)}, difference, tests[0][1] if whole and len(tests) == 1 else None


def _compared_report(run: Run, other: Optional[Run], column: Column, places: Places) -> Union[str, Found]:
    ours = _report(run, column, places)
    if isinstance(ours, str) or other is None or not measure_of(column.measure).compared:
        return ours
    theirs = _report(other, column, places)
    return ours if isinstance(theirs, str) else (ours[0], ours[0][""] - theirs[0][""], None)


def _report(run: Run, column: Column, places: Places) -> Union[str, Found]:
    measure, folder = measure_of(column.measure), places.folder(run)
    path = folder.path / "measures" / f"{measure.source}.json"
    report = read_report(path)
    if report is not None:
        with reading(path):
            value = measure.read(report)
            points: Dict[str, Any] = dict(value) if measure.by_words else {"": value}  # type: ignore[arg-type]
            return {point: finite_number(figure) for point, figure in points.items()}, None, None
    reasons = [] if measure.source in TIMED else [_untrained(run, places)]
    reasons += [_reason(folder.path, f"measure-{measure.source}")]
    unscored = measure.source in SCORED and folder.evaluation("test").scores() is None
    reasons += [_reason(folder.path, "evaluate-test")] if unscored else []
    return next(filter(None, reasons), f"{measure.source} is not measured")


def _untrained(run: Run, places: Places) -> Optional[str]:
    """Why a run has no checkpoint to measure; None if it has one."""
    folder = places.folder(run)
    if folder.is_finished:
        return None
    for needed in filter(None, (run.baseline, run.teacher)):
        why = _untrained(needed, places)
        if why:
            return f"not trained, since {needed.title} is missing: {why}"
    reason = _reason(folder.path, "train")
    if folder.is_bound:
        return "its training is not finished" + (f": {reason}" if reason else "")
    return reason or "not trained"


def _reason(folder: Path, step: str) -> Optional[str]:
    """The last line of a step's log."""
    try:
        lines = (folder / "log" / f"{step}.log").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)


def _label(runs: List[Tuple[Run, Optional[Run]]], column: Column, places: Places) -> Optional[str]:
    """The name, text kind and signature of a column's scores, as the score files state them."""
    measure = measure_of(column.measure)
    for run, _ in runs if measure.score else ():
        for split in column.splits if applies(column.measure, run) else ():
            evaluation = places.folder(run).evaluation(split)
            scores = evaluation.scores()
            if scores is None or measure.external:
                continue
            with reading(evaluation.scores_file):
                score = scores["scores"][measure.score]
                label, text, signature = (str(score[part]) for part in ("label", "text", "signature"))
            return f"{escaped(label)} ({escaped(text)}; `{one_line(signature.replace('`', ''))}`)"
    return None
