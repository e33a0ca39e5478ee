"""Collect our figures of a table from the folders of its runs. Nothing here takes long to compute."""

import math
import re
import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from capsule_routing.errors import UserError, one_line
from experiments.tables.definitions import Column, Row, Table
from experiments.tables.measures import MEASURES, RunMeasure
from experiments.tables.runs import Run, TableRuns, Workspace
from experiments.tables.scales import Scale
from experiments.tables.sources import TIMED, applies
from fairseq_capsule_lab.analysis.output import escaped
from fairseq_capsule_lab.evaluation import seeds
from fairseq_capsule_lab.evaluation.json_files import finite, read_object, reading
from fairseq_capsule_lab.runs import RunFolder


@dataclass(frozen=True)
class Figures:
    """Our figures of one row and column, of one or several seeds.

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
    effect: Optional[seeds.Effect] = None
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
# A run, and the one that it is compared with.
Pair = Tuple[Run, Optional[Run]]


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

    def of(self, row: Row) -> Tuple[Points, ...]:
        """The points of a row in each column; empty for a row that cannot be run."""
        return self.cells.get(row.label, ({"": Figures(missing="")},) * len(self.table.columns))

    def points(self, number: int) -> List[str]:
        """All points of the column with this number."""
        columns = (cells[number] for cells in self.cells.values())
        return list(dict.fromkeys(point for column in columns for point, f in column.items() if f.values)) or [""]


def gather(table: Table, scale: Scale, workspace: Workspace) -> Results:
    """Collect the figures of every seed that has a folder.

    Raises:
        UserError: the table has an unknown configuration, or a file of figures cannot be read.
    """
    trained = trained_seeds(scale, workspace)
    rows, runs = table.to_run(), TableRuns(table, scale, workspace)
    columns: List[List[Points]] = []
    labels: List[Optional[str]] = []
    stands_in: List[Optional[str]] = []
    for column in table.columns:
        compared = [_pairs(runs, row, column, trained) for row in rows]
        points = [_points(pairs, column) for pairs in compared]
        with_effect = [of_row for of_row in points if of_row.get("", Figures()).effect]
        effects = [effect for of_row in with_effect if (effect := of_row[""].effect)]
        for of_row, effect in zip(with_effect, seeds.holm(effects)):  # correct each p for the number of rows
            of_row[""] = replace(of_row[""], effect=effect)
        columns.append(points)
        labels.append(_label([run for pairs in compared for run, _ in pairs], column))
        setup = scale.setup(table.paper, column.corpus[0], big=False)
        missing = ", ".join(split for split in column.splits if split not in setup.splits)
        corpus = setup.configs + (f" (without {missing})" if missing else "")
        stands_in.append(corpus if setup.stands_in else None)
    cells = {row.label: of_row for row, of_row in zip(rows, zip(*columns))}
    return Results(table, scale, cells, tuple(labels), tuple(stands_in))


def trained_seeds(scale: Scale, workspace: Workspace) -> List[int]:
    """The seeds that a run at this scale has a folder for, or 1."""
    names = {path.name for path in (workspace.runs / scale.name).glob("*/*/seed*")}
    return sorted(int(name[4:]) for name in names if re.fullmatch(r"seed\d+", name)) or [1]


def measured(folder: RunFolder, measure: RunMeasure) -> Optional[Dict[str, float]]:
    """The figures of a measure in its file in `RUN/measures`, by the number of words; None without a file.

    Raises:
        UserError: the file is damaged.
    """
    path = folder.path / "measures" / f"{measure.source}.json"
    printed = read_object(path)
    if printed is None:
        return None
    with reading(path):
        return measure.figures(printed)


def _pairs(runs: TableRuns, row: Row, column: Column, trained: Sequence[int]) -> List[Pair]:
    """The runs of a row for a column, and those that they are compared with; none if it cannot have the figure."""
    pairs = dict.fromkeys(runs.compared(row, column, seed) for seed in trained)
    return [pair for pair in pairs if applies(column, pair[0])]


def _points(pairs: List[Pair], column: Column) -> Points:
    """The figures of a row over the seeds that have them."""
    if not pairs:
        return {"": Figures(missing="")}
    read = _score if MEASURES[column.measure].score else _measurement
    of_seeds = [(pair, read(*pair, column)) for pair in pairs]
    found = {pair: points for pair, points in of_seeds if not any(figures.missing for figures in points.values())}
    if not found:
        return of_seeds[0][1]
    merged: Points = {}
    for point, figures in (item for points in found.values() for item in points.items()):
        before = merged.get(point, Figures())
        values, differences = before.values + figures.values, before.differences + figures.differences
        merged[point] = Figures(values, differences, before.ps + figures.ps)
    if len(found) > 1 and read is _score:
        figures = replace(merged[""], effect=_effect(list(found), column))
        # A difference of some seeds would stand beside the mean of all.
        if figures.effect is None and len(figures.differences) < sum(_both_scored(*pair, column) for pair in found):
            figures = replace(figures, differences=(), ps=())
        merged[""] = figures
    elif "" in merged and len(merged[""].differences) == len(found) > 1:
        effect = seeds.effect(np.array(merged[""].differences), error_over_sentences=0)
        merged[""] = replace(merged[""], effect=effect)
    return merged


def _both_scored(run: Run, other: Optional[Run], column: Column) -> bool:
    """Whether the run that a scored run is compared with has the scores of a column too."""
    splits = [split for split in column.splits if split in run.setup.splits]
    return other is not None and all(other.folder.evaluation(split).scores_file.exists() for split in splits)


def _effect(pairs: List[Pair], column: Column) -> Optional[seeds.Effect]:
    """The effect over seeds and sentences, as a mean over the splits; None if these seeds have not been compared."""
    measure = MEASURES[column.measure]
    run, other = pairs[0]
    if other is None:
        return None
    differences, errors = [], []
    for split in (split for split in column.splits if split in run.setup.splits):
        path = run.workspace.runs / run.comparison(other, [run.seed for run, _ in pairs], split)
        printed = read_object(path)
        if printed is None:
            return None
        with reading(path):
            theirs, ours = printed["scores"][measure.score]
            both = zip(ours["scores"], theirs["scores"], strict=True)
            of_seeds = [finite(our) - finite(their) for our, their in both]
            errors.append(finite(ours["effect"]["error_over_sentences"]))
        if len(of_seeds) != len(pairs):
            return None
        differences.append(of_seeds)
    return seeds.effect(np.mean(differences, axis=0), math.hypot(*errors) / len(errors))


def _score(run: Run, other: Optional[Run], column: Column) -> Points:
    """The mean over the splits that the corpus has, its difference to the other run's, and p if there is one split."""
    measure = MEASURES[column.measure]
    values, tests = [], []
    splits = [split for split in column.splits if split in run.setup.splits]
    if not splits:
        return _none(f"{run.setup.data} has no split {', '.join(column.splits)}")
    for split in splits:
        evaluation = run.folder.evaluation(split)
        scores = read_object(evaluation.scores_file)
        if scores is None:
            return _none(_untrained(run) or f"{split} is not scored")
        path = run.workspace.runs / run.comparison(other, [run.seed], split) if other else Path()
        compared = read_object(path) if other else None
        with reading(evaluation.scores_file):
            values.append(finite(measure.read(scores)))
        if compared is not None:
            with reading(path):
                test = compared["scores"][measure.score]["against"]
                p = test["p"]  # None if both scores are equal
                tests.append((finite(test["difference"]), None if p is None else finite(p)))
    whole = len(tests) == len(values)
    differences = (statistics.mean(difference for difference, _ in tests),) if whole else ()
    ps = tuple(p for _, p in tests if p is not None) if whole and len(tests) == 1 else ()
    return {"": Figures((statistics.mean(values),), differences, ps)}


def _measurement(run: Run, other: Optional[Run], column: Column) -> Points:
    """The figures of a file in `RUN/measures`, and their difference to those of the other run if it has the file."""
    measure = MEASURES[column.measure]
    values = measured(run.folder, measure)
    if values is None:
        reason = None if measure.source in TIMED else _untrained(run)
        return _none(reason or f"{measure.source} is not measured")
    theirs = measured(other.folder, measure) if other and measure.compared else None
    differences = (values[""] - theirs[""],) if theirs else ()
    return {point: Figures((value,), differences) for point, value in values.items()}


def _none(reason: str) -> Points:
    return {"": Figures(missing=reason)}


def _untrained(run: Run) -> Optional[str]:
    """Why a run has no checkpoint to measure; None if it has one. Its logs say more."""
    if run.folder.is_finished:
        return None
    return "its training is not finished" if run.folder.is_bound else "not trained"


def _label(runs: Sequence[Run], column: Column) -> Optional[str]:
    """The name, text kind and signature of a column's scores, as the score files state them; None without scores.

    Raises:
        UserError: two files of a split state different ones. Then no mean or difference has a meaning.
    """
    measure = MEASURES[column.measure]
    stated: Dict[str, Tuple[str, Path]] = {}  # by split, with the first file that states it
    for run in runs if measure.score else ():
        for evaluation in map(run.folder.evaluation, column.splits):
            scores = read_object(evaluation.scores_file)
            if scores is None:
                continue
            with reading(evaluation.scores_file):
                score = scores["scores"][measure.score]
                label, text, signature = (str(score[part]) for part in ("label", "text", "signature"))
            shown = f"{escaped(label)} ({escaped(text)}; `{one_line(signature.replace('`', ''))}`)"
            first, file = stated.setdefault(evaluation.path.name, (shown, evaluation.scores_file))
            if shown != first:
                raise UserError(
                    f"{evaluation.scores_file}: {shown}, but {file}: {first}; score both in the same way, or delete "
                    "one: then it is left out"
                )
    return next((label for label, _ in stated.values()), None)
