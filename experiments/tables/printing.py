"""Print tables as Markdown and CSV, with our figures beside the papers'."""

import re
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from experiments.tables.measures import MEASURES, RATIOS
from experiments.tables.plots import plot
from experiments.tables.results import Figures, Results
from fairseq_capsule_lab.analysis.output import Analysis, escaped

_PLACE = re.compile(r"-(table|figure)(\d+)$")


@dataclass(frozen=True)
class Line:
    """A line of the CSV file: one figure. `of` is the number of source words if the column has several points."""

    row: str
    column: str
    of: str
    paper: Optional[str]
    mean: Optional[float]
    spread: Optional[float]
    seeds: int
    difference: Optional[float]
    p: str
    low: Optional[float]
    high: Optional[float]
    p_over_seeds: Optional[float]
    detectable: Optional[float]
    error_over_seeds: Optional[float]
    error_over_sentences: Optional[float]
    missing: Optional[str]


def csv_lines(results: Results) -> List[Line]:
    """Every figure of a table, ours and the paper's."""
    made = []
    for row in results.table.rows:
        for column, paper, ours in zip(results.table.columns, row.paper, results.of(row)):
            for point, figures in ours.items():
                effect = figures.effect
                line = Line(
                    row=row.label,
                    column=column.label,
                    of=point,
                    paper=paper,
                    mean=figures.mean,
                    spread=figures.spread,
                    seeds=len(figures.values),
                    difference=figures.difference,
                    p=" ".join(f"{p:.4f}" for p in figures.ps),
                    low=effect.low if effect else None,
                    high=effect.high if effect else None,
                    p_over_seeds=effect.p_adjusted if effect else None,
                    detectable=effect.detectable if effect else None,
                    error_over_seeds=effect.error_over_seeds if effect else None,
                    error_over_sentences=effect.error_over_sentences if effect else None,
                    missing=figures.missing or None,
                )
                made.append(line)
    return made


def markdown(results: Results) -> str:
    """The table, with notes under it: corpora, signatures, and what is missing."""
    table = results.table
    body = [[""], ["---"], *([escaped(row.label)] for row in table.rows)]
    for number, column in enumerate(table.columns):
        ours = [results.of(row)[number] for row in table.rows]
        digits = MEASURES[column.measure].digits
        printed = [row.paper[number] or "" for row in table.rows]
        columns = [(", the paper's", printed)] if any(printed) else []
        for point in results.points(number):
            cells = [_cell(points.get(point) or points.get(""), digits) for points in ours]
            columns.append((_point(point) + ", ours", cells))
        for kind, cells in columns:
            for line, cell in zip(body, [escaped(column.label) + escaped(kind), "---", *cells]):
                line.append(cell)
    match = _PLACE.search(table.name)
    place = f": {match[1].title()} {match[2]}" if match else ""
    paper = f"{table.paper_title}{place}. " if table.paper else ""
    title = f"# {table.title}\n\n{paper}Scale: {results.scale.name}.\n\n"
    return title + "".join(f"| {' | '.join(line)} |\n" for line in body) + "\n" + "".join(_notes(results))


def analysis(results: Results, figure: bool = False) -> Analysis:
    """The table as NAME.md and .csv, and with `figure`, or for a paper's figure, .png and .svg."""
    drawn = plot(results) if figure or "-figure" in results.table.name else None
    return Analysis(results.table.name, markdown(results), csv_lines(results), drawn)


def _cell(figures: Optional[Figures], digits: int) -> str:
    if figures is None or (figures.mean is None and not figures.missing):
        return ""
    if figures.mean is None:
        return "missing"
    cell = f"{figures.mean:,.{digits}f}"
    if figures.spread:
        cell += f" ± {figures.spread:.{digits}f}"
    if effect := figures.effect:
        difference, low, high = (f"{value:+.{digits}f}" for value in (effect.difference, effect.low, effect.high))
        cell += f" ({difference}, {low} to {high}, p {_p(effect.p_adjusted)})"
    elif figures.difference is not None:
        ps = ", ".join(map(_p, figures.ps))
        cell += f" ({figures.difference:+.{digits}f}{f', p {ps}' if ps else ''})"
    return cell


def _p(p: float) -> str:
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def _notes(results: Results) -> Iterator[str]:
    table = results.table
    yield from (f"- {escaped(note)}\n" for note in table.notes)
    told: Dict[str, List[str]] = {}
    for column, label, stands_in in zip(table.columns, results.labels, results.stands_in):
        corpus = f"{stands_in} stands for {column.corpus[0]}" if stands_in else None
        told.setdefault("; ".join(filter(None, (corpus, label))), []).append(column.label)
    for what, columns in told.items():
        if what:
            yield f"- {escaped(', '.join(columns))}: {what}.\n"
    speeds = [column.label for column in table.columns if column.measure in RATIOS]
    if speeds:
        yield f"- {escaped(', '.join(speeds))}: the ratio to fairseq's own model of the same size; for that none.\n"
    compared = dict.fromkeys(row.against for row in table.rows if row.against)
    ours = [figures for cells in results.cells.values() for points in cells for figures in points.values()]
    if any(len(figures.values) > 1 for figures in ours):
        yield f"- ±: the standard deviation over seeds{_seeds(results)}.\n"
    if compared and any(figures.effect for figures in ours):
        of_seeds = ", ".join(column.label for column in table.columns if MEASURES[column.measure].compared)
        only = f" ({escaped(of_seeds)}: over seeds only)" if of_seeds else ""
        yield (
            f"- In brackets, for several seeds: the mean difference to {_quoted(compared, ' or ')}, its 95% interval "
            f"over seeds and sentences{only}, and its p after "
            "Holm's correction for the rows of the column.\n"
        )
    if compared and any(figures.differences and not figures.effect for figures in ours):
        yield (
            f"- In brackets, without an interval: the mean difference to {_quoted(compared, ' or ')} over the seeds of "
            "both rows, and for each seed the p of a paired bootstrap over the sentences; a mean over several test "
            "sets has no p.\n"
        )
    missing: Dict[Tuple[str, str], List[str]] = {}  # the columns by row and reason
    for line in csv_lines(results):
        if line.missing:
            missing.setdefault((line.row, line.missing), []).append(line.column)
    rows: Dict[Tuple[str, str], List[str]] = {}
    for (row, reason), columns in missing.items():
        rows.setdefault((", ".join(columns), reason), []).append(row)
    for (columns_of_rows, reason), labels in rows.items():
        yield f"- Missing: {_quoted(labels, ', ')}: {escaped(f'{columns_of_rows}: {reason}')}.\n"


def _seeds(results: Results) -> str:
    """How many seeds each row has, and in brackets the columns that have fewer."""
    rows: Dict[str, Tuple[int, List[str]]] = {}
    for row, cells in results.cells.items():
        columns: Dict[int, List[str]] = {}
        for column, of_column in zip(results.table.columns, cells):
            numbers = {point: len(figures.values) for point, figures in of_column.items() if figures.values}
            is_uniform = len(set(numbers.values())) == 1
            for point, number in [("", max(numbers.values()))] if is_uniform else numbers.items():
                columns.setdefault(number, []).append(column.label + _point(point))
        most, *fewer = sorted(columns, reverse=True) or [0]
        parts = "; ".join(f"{number} in {escaped(', '.join(columns[number]))}" for number in fewer)
        rows.setdefault(f"{most} ({parts})" if parts else f"{most}", (most, []))[1].append(row)
    legend = sorted(rows.items(), key=lambda item: item[1][0], reverse=True)
    return "".join(f"; {text} for {_quoted(labels, ', ')}" for text, (most, labels) in legend if most)


def _quoted(labels: Iterable[str], joint: str) -> str:
    return joint.join(f"*{escaped(label)}*" for label in labels)


def _point(point: str) -> str:
    return f", {point} words" if point else ""
