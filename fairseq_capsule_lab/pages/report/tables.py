"""The tables of the page. A copy of a table has the rows in the order that the page shows."""

import html
from dataclasses import dataclass
from typing import List, Optional, Sequence, Union

from fairseq_capsule_lab.analysis.coverage import CoverageRow
from fairseq_capsule_lab.pages.report.comparison import Comparison, Estimate, LengthGroup
from fairseq_capsule_lab.pages.report.systems import System
from fairseq_capsule_lab.runs.training_log import finite

# The columns of the table of speeds, in order, and the number of decimals.
SPEEDS = {
    "parameters": 0,
    "of them embeddings": 0,
    "training, words/s": 0,
    "training, × baseline": 2,
    "translation, × baseline": 2,
}


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and the number to sort it by, if any."""

    text: str
    value: Optional[float] = None


@dataclass(frozen=True)
class PageTable:
    """A table of the page.

    Attributes:
        name: the id of the element is `NAME-table`.
        caption: a sentence that describes the figures.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def html(self) -> str:
        numeric = [any(row[i].value is not None for row in self.rows) for i in range(len(self.columns))]
        head = "".join(
            f"<th scope=col{' class=number' if is_number else ''}><button type=button>{html.escape(label)}</button>"
            for label, is_number in zip(self.columns, numeric)
        )
        body = "".join(f"<tr>{''.join(map(_cell, row, numeric, range(len(row))))}</tr>" for row in self.rows)
        return (
            f'<div class="table" id="{self.name}-table"><p class="caption" id="{self.name}-caption">'
            f'{html.escape(self.caption)}</p><div class="scroll" tabindex="0" role="region" '
            f'aria-labelledby="{self.name}-caption"><table aria-labelledby="{self.name}-caption">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
        )


def _cell(cell: Cell, is_number: bool, column: int) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    text = html.escape(cell.text)
    if column == 0:
        return f'<th scope="row"{value}>{text}</th>'
    return f"<td{' class=number' if is_number else ''}{value}>{text}</td>"


def facts_table(systems: Sequence[System]) -> PageTable:
    """The settings of training and translation. Columns that are empty for all runs are left out."""
    columns = [name for name in systems[0].facts if any(system.facts[name] for system in systems)]
    rows = [
        [Cell(system.name), *(_plain(system.facts[name]) for name in columns), Cell(str(system.path))]
        for system in systems
    ]
    caption = "Settings of training and translation, from the run folders."
    return PageTable("runs", caption, ["system", *columns, "run folder"], rows)


def scores_table(systems: Sequence[System], comparisons: Sequence[Comparison]) -> PageTable:
    """One row per system: each score with its interval, and p against the first system."""
    columns = ["system"]
    rows = [[Cell(system.name)] for system in systems]
    for comparison in comparisons:
        columns += [comparison.measure.label, "p"]
        for row, estimate in zip(rows, comparison.estimates):
            row += [scored(estimate, comparison.measure.digits), p_cell(estimate)]
    if comparisons[0].estimates[0].length_ratio is not None:
        columns.append("length ratio")
        for row, estimate in zip(rows, comparisons[0].estimates):
            row.append(_number(estimate.length_ratio, 3))
    caption = f"Scores with 95% intervals; p of the difference from {systems[0].name}, by sacrebleu's paired bootstrap."
    return PageTable("scores", caption, columns, rows)


def lengths_table(systems: Sequence[System], groups: Sequence[LengthGroup], unit: str) -> PageTable:
    """One row per group: the score of each system with its interval, and p against the first system."""
    columns = [unit, "sentences"]
    for number, system in enumerate(systems):
        columns += [system.name] if number == 0 else [system.name, "p"]
    rows: List[List[Cell]] = []
    for place, group in enumerate(groups):
        row = [Cell(group.words, place), Cell(str(len(group.sentences)), len(group.sentences))]
        for number, estimate in enumerate(group.comparison.estimates):
            row += [scored(estimate)] if number == 0 else [scored(estimate), p_cell(estimate)]
        rows.append(row)
    label = groups[0].comparison.measure.label
    caption = f"{label} by the length of the source, with 95% intervals; p of the difference from {systems[0].name}."
    return PageTable("lengths", caption, columns, rows)


def ratios_table(systems: Sequence[System], groups: Sequence[LengthGroup], unit: str) -> PageTable:
    rows = [
        [Cell(group.words, place), *(_number(estimate.length_ratio, 3) for estimate in group.comparison.estimates)]
        for place, group in enumerate(groups)
    ]
    caption = "Words of the translations divided by words of the references, by the length of the source."
    return PageTable("ratios", caption, [unit, *(system.name for system in systems)], rows)


def coverage_table(rows: Sequence[CoverageRow], alignments: int) -> PageTable:
    shown = [
        [
            Cell(row.system),
            Cell(f"{row.cdr:.4f} ± {row.cdr_spread:.4f}", row.cdr),
            Cell(f"{row.under:.2f} ± {row.under_spread:.2f}", row.under),
            Cell(f"{row.over:.2f} ± {row.over_spread:.2f}", row.over),
        ]
        for row in rows
    ]
    caption = (
        "Coverage of the source, from word alignments by eflomal (docs/analyzing.md). "
        f"Mean of {alignments} alignments; ±: the largest distance of one alignment from the mean."
    )
    return PageTable("coverage", caption, ["system", "CDR", "under-translated, %", "over-translated, %"], shown)


def speeds_table(systems: Sequence[System]) -> Optional[PageTable]:
    """Parameters and speeds from logs and measurements; None if no run has any."""
    columns = [name for name in SPEEDS if any(name in system.speeds for system in systems)]
    if not columns:
        return None
    rows = [
        [
            Cell(system.name),
            *(_number(system.speeds.get(name), SPEEDS[name]) for name in columns),
            Cell(system.facts["trained on"]),
        ]
        for system in systems
    ]
    caption = (
        "From the logs of the trainings, and from RUN/measures if scripts/reproduce.sh measured them. Compare "
        "words/s only between runs on the same machine with no other load."
    )
    return PageTable("speeds", caption, ["system", *columns, "trained on"], rows)


def scored(estimate: Estimate, digits: int = 2) -> Cell:
    return Cell(f"{estimate.score:.{digits}f} ± {estimate.interval:.{digits}f}", estimate.score)


def p_cell(estimate: Estimate) -> Cell:
    return Cell("" if estimate.p is None else f"{estimate.p:.4f}", estimate.p)


def _number(value: Union[float, None], digits: int) -> Cell:
    return Cell("") if value is None else Cell(f"{value:,.{digits}f}", value)


def _plain(text: str) -> Cell:
    """The cell of a fact, sorted as a number if it is one."""
    return Cell(text, finite(text.replace(",", "")))
