"""Plots of tables, drawn from figures."""

from experiments.tables.definitions import load_table
from experiments.tables.plots import plot
from experiments.tables.results import Figures, Results
from experiments.tables.scales import load_scale

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


def test_one_key_of_a_grid_is_enough(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(TABLE.replace(", series: capsules", "").replace("capsules: [2], ", "").replace("{capsules} ", ""))
    table = load_table(str(path))
    cells = {row.label: ({"": Figures((30.0 + number,))},) for number, row in enumerate(table.to_run())}
    [axis] = plot(Results(table, load_scale("small"), cells, ("BLEU",), (None,))).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
    assert drawn.keys() == {"capsules, {iterations} iterations", "{iterations} iterations"}
    assert drawn["capsules, {iterations} iterations"][:2] == [30.0, 31.0]


BY_LENGTH = """
title: T
columns: {BLEU: {corpus: multi30k, measure: bleu}, by length: {corpus: multi30k, measure: bleu_by_length}}
figure: {x: source words}
rows: {A: {run: transformer}}
"""


def test_columns_with_one_figure_are_not_drawn_by_length(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(BY_LENGTH)
    by_length = {"≤ 10": Figures((40.0,)), "> 10": Figures((30.0,))}
    cells = {"A": ({"": Figures((35.0,))}, by_length)}
    [axis] = plot(Results(load_table(str(path)), load_scale("small"), cells, ("", ""), (None, None))).axes
    assert axis.get_ylabel() == "by length"
    assert [list(line.get_ydata()) for line in axis.get_lines()] == [[40.0, 30.0]]
    cells = {"A": ({"": Figures((35.0,))}, {"": Figures(missing="not trained")})}
    assert plot(Results(load_table(str(path)), load_scale("small"), cells, ("", ""), (None, None))) is None
