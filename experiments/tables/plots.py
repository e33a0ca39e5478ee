"""Plots of tables, and their learning curves."""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from matplotlib.figure import Figure as Plot

from capsule_routing.errors import UserError
from experiments.tables.definitions import Table
from experiments.tables.results import Figures, Results, trained_seeds
from experiments.tables.runs import GIVEN, TableRuns, Workspace
from experiments.tables.scales import Scale
from fairseq_capsule_lab.analysis import charts, output
from fairseq_capsule_lab.analysis.output import Analysis
from fairseq_capsule_lab.runs.training_log import read_curves

FROM_SCRATCH, FINE_TUNED = "NLL in bits, from scratch", "NLL in bits, fine-tuned"


def plot(results: Results) -> Optional[Plot]:
    """The plot; None if the definition has no figure, or if there are no results yet."""
    table, cells = results.table, results.cells
    if not table.figure or not any(f.values for of_row in cells.values() for p in of_row for f in p.values()):
        return None
    axis = table.figure["x"]
    if "y" in table.figure:
        return _over_a_column(results, axis, table.figure["y"])
    if "series" in table.figure or any(axis in row.at for row in table.rows):
        return _grid(results, axis, table.figure.get("series"))
    panels: Dict[str, Dict[str, Any]] = {column.label: {} for column in table.columns}
    if axis == "rows":
        for row, of_row in cells.items():
            for panel, of_column in zip(panels.values(), of_row):
                figures = of_column.get("", Figures())
                panel[row] = (figures.mean, figures.spread or 0)
        return charts.points(panels, table.title)
    ticks = next(filter(any, (results.points(number) for number in range(len(panels)))), None)
    if not ticks:
        return None
    for row, of_row in cells.items():
        for panel, of_column in zip(panels.values(), of_row):
            values = [of_column.get(tick, Figures()).mean for tick in ticks]
            if any(value is not None for value in values):
                panel[row] = values
    return charts.lines({label: panel for label, panel in panels.items() if panel}, ticks, axis, table.title)


def _grid(results: Results, axis: str, series: Optional[str]) -> Plot:
    """A line for each value of `series`, or without it for each definition of rows, over the values of `axis`."""
    table = results.table
    keys = {axis, series} if series else {axis}
    placed = [row for row in table.rows if row.label in results.cells and keys <= row.at.keys()]
    ticks = list(dict.fromkeys(row.at[axis] for row in placed))
    panels: Dict[str, Dict[str, List[Optional[float]]]] = {column.label: {} for column in table.columns}
    for row in placed:
        for panel, of_column in zip(panels.values(), results.cells[row.label]):
            line = f"{row.at[series]} {series}" if series else row.defined
            values = panel.setdefault(line, [None] * len(ticks))
            values[ticks.index(row.at[axis])] = of_column.get("", Figures()).mean
    return charts.lines(panels, ticks, axis, table.title)


def _over_a_column(results: Results, x: str, y: str) -> Plot:
    """One point for each row. A model compared with itself has the ratio 1, which is not measured."""
    labels = [column.label for column in results.table.columns]
    points: Dict[str, Tuple[float, float, float]] = {}
    for row, cells in results.cells.items():
        over, height = (cells[labels.index(label)].get("", Figures()) for label in (x, y))
        across = 1.0 if over.missing == "" else over.mean
        if across is not None and height.mean is not None:
            points[row] = (across, height.mean, height.spread or 0)
    return charts.scatter(points, x, y, results.table.title)


# --- learning curves -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """The validation NLL of a row, in bits per token, over seeds."""

    row: str = output.column("system")
    updates: int = output.column("updates")
    seeds: int = output.column("seeds")
    mean: float = output.column("mean", 3)
    low: float = output.column("lowest", 3)
    high: float = output.column("highest", 3)


def curves(table: Table, scale: Scale, workspace: Workspace) -> Analysis:
    """Read the training logs of all rows.

    Only the updates at which every seed of the row was validated have a point.

    Raises:
        UserError: no run has a log with a validation.
    """
    points: List[Point] = []
    panels: Dict[str, Dict[str, charts.Band]] = {FROM_SCRATCH: {}, FINE_TUNED: {}}
    seeds, of_table = trained_seeds(scale, workspace), TableRuns(table, scale, workspace)
    for row in table.to_run():
        runs = dict.fromkeys(of_table.run(row, table.columns[0], seed) for seed in seeds)
        logs = [read_curves(run.folder.path / "train.log") for run in runs if run.config != GIVEN]
        nlls = [log["nll_loss"] for log in logs if "nll_loss" in log]
        of_row = []
        for updates in sorted(set.intersection(*map(set, nlls))) if nlls else ():
            values = [curve[updates] for curve in nlls]
            of_row.append(Point(row.label, updates, len(values), sum(values) / len(values), min(values), max(values)))
        points += of_row
        if of_row:
            columns = zip(*((point.updates, point.mean, point.low, point.high) for point in of_row))
            panels[FINE_TUNED if row.on else FROM_SCRATCH][row.label] = charts.Band(*columns)
    if not points:
        raise UserError(
            f"--curves: no run of {table.name} at scale {scale.name} has a training log in {workspace.runs}"
        )
    drawn = charts.bands({label: panel for label, panel in panels.items() if panel}, "updates", table.title)
    return Analysis(f"{table.name}-curves", "", points, drawn)
