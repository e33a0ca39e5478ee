"""The tables of configs/tables, at every scale: their runs can start, and their figures are those of the papers."""

from dataclasses import fields

import pytest
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY

from capsule_routing.errors import UserError
from experiments.tables.definitions import CONFIGS, REPOSITORY, load_table, table_names
from experiments.tables.printing import markdown
from experiments.tables.results import gather
from experiments.tables.runs import TableRuns, composed, composed_of
from experiments.tables.scales import load_scale
from experiments.tables.steps import work_of


def all_runs(scale, workspace):
    """Yield every run of every table at a scale, with the run that it is compared with."""
    for name in table_names():
        table = load_table(name)
        for row in table.to_run():
            for column in table.columns:
                yield (
                    name,
                    row.label,
                    column.measure,
                    *TableRuns(table, load_scale(scale), workspace).compared(row, column, 1),
                )


@pytest.mark.parametrize("scale", ["paper", "small", pytest.param("smoke", marks=pytest.mark.slow)])
def test_every_run_can_start(scale, workspace):
    """Its configuration exists, and every override is an option of the part that it overrides.

    Of the runs that override the same settings with other values, one is composed.
    """
    runs = {}
    for *_, run, _ in all_runs(scale, workspace):
        names = frozenset(word.partition("=")[0] for word in run.all_overrides)
        runs[run.setup.configs, run.config, names] = run
        assert (CONFIGS / run.setup.configs / f"{run.config}.yaml").is_file()
        assert len(run.title) < 200 and not set(run.title) & set("=,/ ")
        assert run.setup.pairs > 0
        assert (REPOSITORY / run.setup.prepare[0]).is_file() and run.setup.decode
    for run in runs.values():
        config = composed_of(run)  # Hydra refuses unknown keys
        if run.user_dir:  # its models are registered only where the plugin is imported
            continue
        for part, registry in (("model", MODEL_DATACLASS_REGISTRY), ("criterion", CRITERION_DATACLASS_REGISTRY)):
            known = {item.name for item in fields(registry[config[part]._name])}
            assert set(config[part]) <= known | {"_name"}, run.title
        assert run.baseline is None or "init_from_baseline" in set(config.task)


def test_compared_rows_start_from_the_same_baseline(workspace):
    for *_, run, other in all_runs("small", workspace):
        if other and run.baseline:
            assert other.baseline == run.baseline


@pytest.mark.parametrize("name", table_names())
def test_figures_of_papers_are_numbers(name):
    table = load_table(name)
    printed = [figure for row in table.rows for figure in row.paper if figure]
    assert printed or table.figure
    for figure in printed:
        float(figure.rstrip("M"))
    if "figure" in name:
        assert table.figure["x"]


@pytest.mark.parametrize(
    "name, row, other, gains",
    [  # what the papers state about their tables in the text
        ("zheng-table1", "GDR + BOW + BCA (OURS)", "Transformer", {"Tests Avg.": 1.59}),
        ("zheng-table1", "OURS - redundant capsules", "Transformer", {"Tests Avg.": 1.24}),
        ("zheng-table1", "RNMT + OURS", "RNMT", {"Tests Avg.": 1.84}),
        ("zheng-table2", "OURS", "Transformer", {"En-De": 0.96, "En-Ro": 0.86}),
        ("weng-table1", "GRET", "Transformer", {"ZH→EN": 1.22, "EN→DE": 1.26, "DE→EN": 1.45, "RO→EN": 0.89}),
        ("weng-table2", "GRET", "Transformer", {"ROUGE-1": 1.63, "ROUGE-2": 1.70, "ROUGE-L": 1.49}),
        ("weng-table3", "GRET", "Transformer", {"BLEU": 1.26}),
        ("weng-table3", "aggregation", "Transformer", {"BLEU": 0.61}),
        ("weng-table4", "GRET-Big", "Transformer-Big", {"BLEU": 0.86}),
        ("wang-table2", "+ Knowledge Distillation", "+ Separable Composition and Scoring", {"BLEU": 1.2}),
        ("wang-table1", "Base, CapsNMT", "Base, Simple Aggregation", {"EN-Fr": 2.5, "EN-DE": 4.4}),
        ("duan-table4", "all layers", "lower half", {"BLEU": 0.23}),
    ],
)
def test_differences_are_those_that_the_papers_state(name, row, other, gains):
    table = load_table(name)
    for number, column in enumerate(table.columns):
        if column.label in gains:
            figures = (float(table.row(label).paper[number]) for label in (row, other))
            assert (
                next(figures) - next(figures) == pytest.approx(gains[column.label], abs=1e-6) or name == "weng-table1"
            )


def test_averages_over_test_sets_are_those_of_the_papers():
    for row in load_table("zheng-table1").rows:
        if any(row.paper):
            *_, first, second, third, mean = row.paper
            assert sum(map(float, (first, second, third))) / 3 == pytest.approx(float(mean), abs=0.011)


def test_a_grid_has_a_row_for_each_point():
    rows = [row for row in load_table("wang-figure3").rows if row.at]
    assert len(rows) == 16
    assert rows[5].at == {"capsules": "4", "iterations": "3"}
    assert rows[5].label == "4 capsules, 3 iterations"
    assert [row.paper for row in load_table("wang-table3").rows[1:]] == [("146", None), ("153", None), ("168", None)]


def test_figures_are_kept_as_printed():
    assert load_table("zheng-table1").row("GDR").paper[4] == "47.03"
    assert load_table("duan-table1").rows[2].paper == (None, "27.30")


def test_halves_of_the_layers_depend_on_the_scale(workspace):
    table = load_table("duan-table4")
    for scale, lower in (("paper", "1-3"), ("small", "1-2"), ("smoke", "1")):
        run = TableRuns(table, load_scale(scale), workspace).run(table.row("lower half"), table.columns[0], 1)
        assert f"model.encoder_routing_layers={lower}" in run.overrides


BLEU = "title: T\ncolumns: {B: {corpus: toy, measure: bleu}}\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("title: [", "expected"),
        (f"{BLEU}rows: {{A: {{runs: x}}}}\n", "row 'A': 'runs' is none of against, grid, "),
        (f"{BLEU}rows: {{A: {{run: [x]}}}}\n", "row 'A': run must be text"),
        ("title: x\ncolumns: {B: {corpus: multi30k, measure: bleu, only: both}}\nrows: {A: {run: x}}\n", "not OPTION="),
        (f"{BLEU}paper: nobody\nrows: {{A: {{run: x}}}}\n", "'nobody' is none of .*; add it to .*titles.yaml"),
        (f"{BLEU}rows: {{A: {{run: x, paper: [1, 2]}}}}\n", "paper must be a list of at most 1 figures"),
        (f"{BLEU}rows: {{A: {{run: x, grid: {{k: [1, 2]}}, paper: [1, 2]}}}}\n", "figures for each of its 2 points"),
        (f"{BLEU}rows: {{A: {{run: x, grid: {{k: 12}}}}}}\n", "k of its grid must be a list"),
        (f"{BLEU}rows: {{A: {{run: x, grid: {{k: [1, 2]}}}}}}\n", "2 rows are named 'A'; .*of its grid"),
        (f"{BLEU}rows:\n  A: {{run: x}}\n  A: {{run: y}}\n", "line 4 on: 'A' is repeated; rename"),
    ],
)
def test_a_broken_definition_is_refused(tmp_path, text, message):
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        load_table(str(tmp_path / "broken.yaml"))


@pytest.mark.parametrize(
    "table, message",
    [
        ("rows: {A: {run: transformer, against: B}, B: {paper: [1]}}", "no row 'B' with a 'run'; those are: A"),
        ("rows: {A: {run: transformer}}\nfigure: {x: words}", "figure: x is 'words'; it must be one of: B, rows"),
        (
            "columns: {B: {corpus: toy, measure: blue}}\nrows: {A: {run: x}}",
            "column 'B': measure 'blue' is none of bleu",
        ),
        (
            "columns: {B: {corpus: toy, measure: nll, splits: test test1}}\nrows: {A: {run: x}}",
            "column 'B': splits are for scores; nll has a set of its own",
        ),
    ],
)
def test_what_a_table_does_not_have_is_named(tmp_path, workspace, table, message):
    (tmp_path / "mine.yaml").write_text(f"title: T\n{table}\n" if "columns" in table else f"{BLEU}{table}\n")
    for use in (gather, work_of):
        with pytest.raises(UserError, match=message):
            use(load_table(str(tmp_path / "mine.yaml")), load_scale("smoke"), workspace)


def test_a_table_may_be_any_yaml_file_and_of_no_paper(tmp_path, monkeypatch, workspace):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(
        "title: Mine\ncolumns: {BLEU: {corpus: toy, measure: bleu}}\nrows:\n  A: {run: transformer}\n  quoted:\n"
    )
    table = load_table("./mine.yaml")
    assert (table.name, table.source, table.paper) == ("mine", tmp_path / "mine.yaml", "")
    run = TableRuns(table, load_scale("smoke"), workspace).run(table.row("A"), table.columns[0], 1)
    assert run.name == "smoke/toy-smoke/transformer/seed1"
    text = markdown(gather(table, load_scale("smoke"), workspace))
    assert text.startswith("# Mine\n\nScale: smoke.\n\n|")


def test_an_override_that_is_not_a_setting_is_refused():
    with pytest.raises(
        UserError, match="configs/toy/transformer.yaml: Could not override 'model.colour'; .* \\+\\+ before a setting"
    ):
        composed("toy", "transformer", ("model.colour=red",))
    with pytest.raises(UserError, match="configs/toy/nothing.yaml: "):
        composed("toy", "nothing", ())
