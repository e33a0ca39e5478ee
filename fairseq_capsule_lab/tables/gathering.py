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
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.seeds import Effect, effect, holm
from fairseq_capsule_lab.runs import read_report
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
# What is raised by reading a figure from a file that is not a report.
NO_REPORT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


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
        LabError: a run has a link or a pipe.
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
        try:
            figure = (
                _score(run, other, column, places)
                if measure_of(column.measure).score
                else _compared_report(run, other, column, places)
            )
        except NO_REPORT:
            figure = "its report is damaged: delete it and measure again"
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
        try:
            reported = folder / f"{split}.json"
            found = (
                external.report_over_seeds(runs, split, measure, places) if measure.external else read_report(reported)
            )
            theirs, ours = found["scores"][measure.score]
            pairs = [_number(our) - _number(their) for our, their in zip(ours["scores"], theirs["scores"], strict=True)]
            errors.append(_number(ours["effect"]["error_over_sentences"]))
        except (LabError, *NO_REPORT):
            return None
        if len(pairs) != len(runs):
            return None
        differences.append(pairs)
    return effect(np.mean(differences, axis=0), math.hypot(*errors) / len(errors))


def _correct(cells: Dict[str, Tuple[Points, ...]], number: int) -> None:
    """Correct the p of all effects of a column for their number."""
    points = [row[number] for row in cells.values() if any(figures.effect for figures in row[number].values())]
    for place, corrected in zip(points, holm([place[""].effect for place in points])):
        place[""] = replace(place[""], effect=corrected)


def _number(found: Any) -> float:
    """Return a figure; raise a ValueError if it is not a finite number."""
    if type(found) not in (int, float) or not math.isfinite(found):
        raise ValueError(f"no figure: {found!r}")
    return found


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
        compared = (
            read_report(places.runs / run.compared_folder(other, [run.seed]) / f"{split}.json") if other else None
        )
        if measure.external:
            try:
                scores, compared = external.report(run, other, split, measure, places)
            except LabError as error:
                return str(error)
        values.append(_number(measure.read(scores)))
        tests += [compared["scores"][measure.score]["against"]] if compared else []
    whole = len(tests) == len(values)
    difference = statistics.mean(_number(test["difference"]) for test in tests) if whole else None
    p = tests[0]["p"] if whole and len(tests) == 1 else None  # None if both scores are equal
    return {"": statistics.mean(values)}, difference, None if p is None else _number(p)


def _compared_report(run: Run, other: Optional[Run], column: Column, places: Places) -> Union[str, Found]:
    ours = _report(run, column, places)
    if isinstance(ours, str) or other is None or not measure_of(column.measure).compared:
        return ours
    theirs = _report(other, column, places)
    return ours if isinstance(theirs, str) else (ours[0], ours[0][""] - theirs[0][""], None)


def _report(run: Run, column: Column, places: Places) -> Union[str, Found]:
    measure, folder = measure_of(column.measure), places.folder(run)
    found = read_report(folder.path / "measures" / f"{measure.source}.json")
    if found is not None:
        value = measure.read(found)
        points = value if isinstance(value, dict) else {"": value}
        return {point: _number(each) for point, each in points.items()}, None, None
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
            scores = places.folder(run).evaluation(split).scores()
            try:
                score = scores["scores"][measure.score] if scores else None
                label, text, signature = (str(score[part]) for part in ("label", "text", "signature"))
            except NO_REPORT:
                continue
            return f"{escaped(label)} ({escaped(text)}; `{one_line(signature.replace('`', ''))}`)"
    return None
