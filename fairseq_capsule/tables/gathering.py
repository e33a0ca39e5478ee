"""Our figures of a table, out of the folders of its runs. Nothing is computed here that takes time."""

import math
import re
import statistics
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from fairseq_capsule.analysis.reports import escaped
from fairseq_capsule.errors import one_line
from fairseq_capsule.tables.definitions import Column, Row, Table
from fairseq_capsule.tables.measures import (
    MEASURES,
    TIMED,
    Value,
    applies,
    read_json,
    reason_file,
    report_file,
)
from fairseq_capsule.tables.runs import Places, Run, compared_runs
from fairseq_capsule.tables.scales import Scale


@dataclass(frozen=True)
class Figures:
    """Our figures of one row and column.

    Attributes:
        values: of each seed.
        differences: to the row which it is compared with, of each seed of which it is known.
        ps: of these, by paired bootstrap.
        missing: why there are none; empty where the row has no such figure.
    """

    values: Tuple[float, ...] = ()
    differences: Tuple[float, ...] = ()
    ps: Tuple[float, ...] = ()
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
        return statistics.mean(self.differences) if self.differences else None


# A figure, its difference to the other run's, and p; or why it is missing.
Found = Union[str, Tuple[Value, Optional[float], Optional[float]]]
# Of one column: figures by the words of the source that they are of; "" for a column without such points.
Points = Dict[str, Figures]
# What reading a figure in something else than a report raises.
NO_REPORT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Results:
    """`cells` has a row's points for each column; `labels` is what a column's scores call themselves, `stands_in` the
    corpus of its figures where that is not the paper's."""

    table: Table
    scale: Scale
    cells: Dict[str, Tuple[Points, ...]]
    labels: Tuple[Optional[str], ...]
    stands_in: Tuple[Optional[str], ...]


def gather(table: Table, scale: Scale, places: Places) -> Results:
    """All that is there, of every seed that is there."""
    seeds = sorted(
        {int(found[1]) for path in (places.runs / scale.name).glob("*/*/seed*") if (found := _SEED(path.name))}
    )
    cells = {
        row.label: tuple(_points(table, row, column, scale, seeds or [1], places) for column in table.columns)
        for row in table.rows
        if row.run
    }
    labels = tuple(_label(table, column, scale, seeds or [1], places) for column in table.columns)
    settings = [scale.setting(table.paper, column.corpus[0], big=False) for column in table.columns]
    stands_in = tuple(setting.configs if setting.stands_in else None for setting in settings)
    return Results(table, scale, cells, labels, stands_in)


_SEED = re.compile(r"seed(\d+)").fullmatch


def _points(table: Table, row: Row, column: Column, scale: Scale, seeds: List[int], places: Places) -> Points:
    runs = dict.fromkeys(compared_runs(table, row, column, scale, seed, places) for seed in seeds)
    found: List[Tuple[Value, Optional[float], Optional[float]]] = []
    reasons: List[str] = []
    for run, other in runs:
        if not applies(column.measure, run):
            return {"": Figures(missing="")}
        find = _score if MEASURES[column.measure].source is None else _report
        try:
            figure = find(run, other, column, places)
        except NO_REPORT:
            figure = "its report is damaged: delete it and measure again"
        if isinstance(figure, str):
            reasons.append(figure)
        else:
            found.append(figure)
    if not found:
        return {"": Figures(missing=reasons[0])}
    if isinstance(found[0][0], dict):
        points = dict.fromkeys(point for value, _, _ in found for point in value)
        return {point: Figures(tuple(value[point] for value, _, _ in found if point in value)) for point in points}
    values, differences, ps = zip(*found)
    return {"": Figures(values, *(tuple(x for x in kind if x is not None) for kind in (differences, ps)))}


def _number(found: Any) -> float:
    """Raise a ValueError for a figure that is no finite number."""
    if type(found) not in (int, float) or not math.isfinite(found):
        raise ValueError(f"no figure: {found!r}")
    return found


def _score(run: Run, other: Optional[Run], column: Column, places: Places) -> Found:
    """The mean over splits, its difference to the other run's, and p where there is one split."""
    values, differences, ps = [], [], []
    for split in column.splits:
        if split not in run.setting.splits:
            return f"{run.setting.data} has no split {split}"
        scores = places.run_folder(run).evaluation(split).scores()
        if scores is None:
            return _why(run, places) or f"{split} is not scored"
        values.append(_number(MEASURES[column.measure].read(scores)))
        tested = _tested(scores, other, column, places)
        if tested:
            differences.append(_number(tested["difference"]))
            ps.append(_number(tested["p"]))
    whole = len(differences) == len(values)
    return (
        statistics.mean(values),
        statistics.mean(differences) if whole else None,
        ps[0] if whole and len(ps) == 1 else None,
    )


def _tested(scores: Dict[str, Any], other: Optional[Run], column: Column, places: Places) -> Optional[Dict[str, Any]]:
    """The comparison with the other run, if that is what these scores were compared with."""
    if other is None or not str(scores.get("against")).startswith(f"{places.folder(other)}/"):
        return None
    return scores["scores"][MEASURES[column.measure].score]["against"]


def _report(run: Run, _: Optional[Run], column: Column, places: Places) -> Found:
    source = MEASURES[column.measure].source
    found = read_json(report_file(run, source, places))
    if found is None:
        reason = reason_file(report_file(run, source, places))
        untrained = None if source in TIMED else _why(run, places)
        return untrained or (reason.read_text().strip() if reason.exists() else f"{source} is not measured")
    value = MEASURES[column.measure].read(found)
    checked = {point: _number(each) for point, each in value.items()} if isinstance(value, dict) else _number(value)
    return checked, None, None


def _why(run: Run, places: Places) -> Optional[str]:
    """Why nothing can be known of a run."""
    folder = places.run_folder(run)
    if folder.is_finished:
        return None
    return "its training has not reached its end" if folder.is_bound else "not trained"


def _label(table: Table, column: Column, scale: Scale, seeds: List[int], places: Places) -> Optional[str]:
    """What the scores of a column are of, in their own words, with their signature."""
    if MEASURES[column.measure].source is not None:
        return None
    for row in table.rows:
        for seed in seeds if row.run else ():
            run, _ = compared_runs(table, row, column, scale, seed, places)
            for split in column.splits if applies(column.measure, run) else ():
                scores = places.run_folder(run).evaluation(split).scores()
                try:
                    score = scores["scores"][MEASURES[column.measure].score] if scores else None
                    label, text, signature = (str(score[part]) for part in ("label", "text", "signature"))
                except NO_REPORT:
                    continue
                return f"{escaped(label)} ({escaped(text)}; `{one_line(signature.replace('`', ''))}`)"
    return None
