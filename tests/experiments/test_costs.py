"""What tables cost: by measured speeds, and as the page of the tables states it."""

import dataclasses
import importlib
import math
import re

import pytest
import torch

from experiments.tables import costs
from experiments.tables.definitions import REPOSITORY, load_table, table_names
from experiments.tables.jobs import Step, total
from experiments.tables.scales import load_scale
from experiments.tables.sources import model_options
from experiments.tables.steps import work_of

PAGE = REPOSITORY / "docs/reproducing.md"
PAPERS = ("duan", "zheng", "weng", "wang")
PAPER, SMALL = load_scale("paper"), load_scale("small")


def runs_of(name, scale, workspace):
    return work_of(load_table(name), scale, workspace).runs


def test_every_system_was_measured():
    for name in {costs.TRANSFORMER, "GDR without losses", *costs.SYSTEMS.values()}:
        assert costs.measured("speed", costs.TRAINING)[name] > 0
        assert costs.measured("kernels", costs.TRAINING)[name] > 0


def test_hours_are_tokens_by_speed(workspace):
    runs = runs_of("duan-table1", PAPER, workspace)
    base = runs["paper/wmt14-en-de/transformer+recipe-duan/seed1"]
    big = runs["paper/wmt14-en-de/capsule_transformer+recipe-duan+size-big/seed1"]
    assert costs.training_hours(base) == pytest.approx(100_000 * 49_152 / 117_048 / 3600)
    assert costs.training_hours(big) == pytest.approx(100_000 * 73_728 / 57_956 / 3600 * 3.5)


def test_a_step_of_few_words_takes_the_time_of_its_kernels(workspace):
    runs = runs_of("zheng-table1", PAPER, workspace)
    hours = {run.config: costs.training_hours(run) for run in runs.values()}
    assert hours["transformer"] == pytest.approx(100_000 * 3925 * 27e-6 / 3600)
    assert hours["gdr_transformer"] == pytest.approx(50_000 * 5344 * 27e-6 / 3600)


def test_rows_have_the_speed_of_their_system(workspace):
    systems = {run.title: costs.system_of(run) for run in runs_of("zheng-table1", PAPER, workspace).values()}
    without = {systems.pop(title) for title in list(systems) if "guided_heads-none" in title}
    assert without == {"GDR without losses", costs.LSTM}  # of the Transformer, and RNMT, continued
    kinds = {"transformer": costs.TRANSFORMER, "continued": costs.TRANSFORMER, "lstm": costs.LSTM}
    kinds |= {"gdr_transformer": "GDR, both losses", "gdr_lstm": "GDR on an LSTM, both losses"}
    assert {title: kinds[title.partition("+")[0]] for title in systems} == systems


def test_a_corpus_of_unknown_size_is_named(workspace):
    """Its costs were printed as 0."""
    runs = runs_of("duan-table2", SMALL, workspace)
    run = runs["small/multi30k/transformer/seed1"]
    unknown = dataclasses.replace(run, setup=dataclasses.replace(run.setup, pairs=0))
    assert costs.cost("train", unknown) == costs.cost("prepare", unknown) == {}
    steps = [Step("train", "a/finished", ["train.sh"], "log"), Step("train", "b/finished", [], "log", cpu_hours=2)]
    reason = "1 of them not counted: no pairs of their corpus in configs/scales"
    assert total(steps) == f"2 trainings, {reason}, 2.0 hours of a CPU core, 0 GB of disk"


def test_a_tiny_model_is_counted_on_the_cpu(workspace):
    work = work_of(load_table("duan-table2"), SMALL, workspace)
    (step,) = (step for step in work.steps() if step.output == "small/multi30k/transformer/seed1/finished")
    assert step.gpu_hours == 0 and 0.4 < step.cpu_hours < 1 and step.minutes < 400
    assert re.fullmatch(r"4 trainings, 2\.\d hours of a CPU core, \d GB of disk", total(work.steps()))


@pytest.mark.parametrize("table, size, words", [("weng-table3", "base", 37_000), ("weng-table4", "big", 37_000)])
def test_checkpoints_have_the_size_of_their_parameters(table, size, words, workspace, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "experiments/benchmarks")
    systems = importlib.import_module("systems")
    run = next(run for run in runs_of(table, PAPER, workspace).values() if costs.size_of(run) == size)
    arch, options = model_options(run)
    options = systems.preset_options(arch, **dict(map(systems.option, options[1::2])))
    with torch.device("meta"):
        model = systems.build(arch, systems.build_task(words), **options)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert 12 * parameters / 1e9 == pytest.approx(costs.GIGABYTES[size], rel=0.1)


def test_the_page_has_the_cost_of_every_table_of_the_papers(workspace):
    """Where it has not, the test prints the rows to paste."""
    rows = []
    for name in (name for paper in PAPERS for name in table_names() if load_table(name).paper == paper):
        work = work_of(load_table(name), PAPER, workspace)
        steps = work.steps()
        # From Python 3.12 on, sum() rounds otherwise.
        hours, gigabytes = (math.fsum(getattr(step, key) for step in steps) for key in ("gpu_hours", "gigabytes"))
        setups = {run.setup.data: run.setup for run in work.corpora.values()}
        licensed = sorted({setup.licensed for setup in setups.values() if setup.licensed})
        cells = [f"`{name}`", str(len(work.trainings)), f"{hours:,.0f}", f"{gigabytes:,.0f}"]
        cells += [", ".join(setups) or "none", ", ".join(licensed) or "free"]
        rows.append(f"| {' | '.join(cells)} |")
    assert len(rows) == 25
    table = "\n".join(rows)
    assert table in PAGE.read_text(encoding="utf-8"), f"\n{table}"
