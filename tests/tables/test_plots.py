"""Plots of tables, drawn from figures."""

from fairseq_capsule.tables.definitions import load_table
from fairseq_capsule.tables.gathering import Figures, Results
from fairseq_capsule.tables.printing import plot
from fairseq_capsule.tables.scales import load_scale

TABLE = """
title: T
columns: {BLEU: {corpus: multi30k, measure: bleu}}
figure: {x: iterations, series: capsules}
rows:
  'quoted {capsules} {iterations}': {grid: {capsules: [9], iterations: [9]}}
  '{capsules} capsules, {iterations} iterations': {run: capsnmt, grid: {capsules: [2], iterations: [1, 3]}}
  '{iterations} iterations': {run: capsnmt, grid: {iterations: [5]}}
"""


def test_rows_without_figures_or_without_a_place_are_not_drawn(tmp_path):
    """Only a row with a run has figures of ours, and rows may have different grids."""
    path = tmp_path / "mine.yaml"
    path.write_text(TABLE)
    table = load_table(str(path))
    cells = {row.label: ({"": Figures((30.0 + number,))},) for number, row in enumerate(table.to_run())}
    [axis] = plot(Results(table, load_scale("small"), cells, ("BLEU",), (None,))).axes
    [line] = axis.get_lines()
    assert list(line.get_ydata()) == [30.0, 31.0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1", "3"]
