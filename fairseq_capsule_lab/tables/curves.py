"""Learning curves of a table's rows: validation NLL over updates, with a band over seeds."""

from dataclasses import dataclass
from typing import Dict, List

from fairseq_capsule_lab.analysis.charts import Band, bands
from fairseq_capsule_lab.analysis.reports import Report, column, markdown_table
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs.training_log import read_training_log
from fairseq_capsule_lab.tables.definitions import Table
from fairseq_capsule_lab.tables.results import trained_seeds
from fairseq_capsule_lab.tables.runs import GIVEN, Places, run_of
from fairseq_capsule_lab.tables.scales import Scale

FROM_SCRATCH, FINE_TUNED = "NLL in bits, from scratch", "NLL in bits, fine-tuned"


@dataclass(frozen=True)
class Point:
    """The validation NLL of a row, in bits per token, over seeds."""

    row: str = column("system")
    updates: int = column("updates")
    seeds: int = column("seeds")
    mean: float = column("mean", 3)
    low: float = column("lowest", 3)
    high: float = column("highest", 3)


def curves(table: Table, scale: Scale, places: Places) -> Report:
    """Read the training logs of all rows.

    Only the updates at which every seed of the row was validated have a point.

    Raises:
        LabError: no run has a log with a validation.
    """
    points: List[Point] = []
    panels: Dict[str, Dict[str, Band]] = {FROM_SCRATCH: {}, FINE_TUNED: {}}
    for row in table.to_run():
        seeds = trained_seeds(scale, places)
        runs = dict.fromkeys(run_of(table, row, table.columns[0], scale, seed, places) for seed in seeds)
        logs = [read_training_log(run.folder.path / "train.log") for run in runs if run.config != GIVEN]
        nlls = [log.validation["nll_loss"] for log in logs if "nll_loss" in log.validation]
        of_row = []
        for updates in sorted(set.intersection(*map(set, nlls))) if nlls else ():
            values = [curve[updates] for curve in nlls]
            of_row.append(Point(row.label, updates, len(values), sum(values) / len(values), min(values), max(values)))
        points += of_row
        if of_row:
            columns = zip(*((point.updates, point.mean, point.low, point.high) for point in of_row))
            panels[FINE_TUNED if row.on else FROM_SCRATCH][row.label] = Band(*columns)
    if not points:
        raise LabError(f"--curves: no run of {table.name} at scale {scale.name} has a training log in {places.runs}")
    text = f"# {table.title}\n\nValidation NLL in bits per token; mean, lowest and highest of the seeds.\n\n"
    drawn = bands({label: panel for label, panel in panels.items() if panel}, "updates", table.title)
    return Report(f"{table.name}-curves", text + markdown_table(points), points, drawn)
