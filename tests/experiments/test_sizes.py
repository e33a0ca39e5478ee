"""The numbers of parameters that the papers print, beside ours."""

from pathlib import Path

import pytest
import torch
from fairseq.models import build_model
from omegaconf import OmegaConf
from torch import nn

from experiments.tables.definitions import load_table
from experiments.tables.runs import TableRuns, Workspace, composed_of
from experiments.tables.scales import load_scale
from tests.zoo import count_parameters, make_task

WORDS = 32_000  # Weng et al.'s limit; Zheng et al. leave embeddings out
PAGE = Path(__file__).parents[2] / "docs/reproducing.md"
# What the models of other rows of a table add to: its first row.
BASELINES = {"RNMT + OURS": "RNMT", "GRET-Big": "Transformer-Big"}


def parameters(row, table, column):
    """The number of parameters of a row's model in millions, as its table counts them."""
    run = TableRuns(table, load_scale("paper"), Workspace(Path("/runs"), Path("/data"))).run(row, column, 1)
    config = OmegaConf.create(OmegaConf.to_container(composed_of(run).model, resolve=True))
    with torch.device("meta"):
        model = build_model(config, make_task(WORDS - 4))
    left_out = set()
    if column.measure == "parameters_without_embeddings":
        left_out = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    return sum(part.numel() for part in model.parameters() if id(part) not in left_out) / 1e6


def lines_of(name):
    """A line of the page for each row of a table whose number of parameters is printed."""
    table = load_table(name)
    [number] = [n for n, column in enumerate(table.columns) if column.measure.startswith("parameters")]
    sizes, lines = {}, []
    for row in table.to_run():
        printed = row.paper and row.paper[number]
        if not printed:
            continue
        theirs, ours = float(printed.removesuffix("M")), parameters(row, table, table.columns[number])
        sizes[row.label] = theirs, ours
        base = sizes[BASELINES.get(row.label, next(iter(sizes)))]
        added = f"{theirs - base[0]:.1f}M", f"{ours - base[1]:.2f}M"
        lines.append(f"| {row.label} | {printed} | {ours:.1f}M | {' | '.join(added if row.on else ('', ''))} |")
    return lines


@pytest.mark.parametrize("name", ["zheng-table1", "weng-table3", "weng-table4"])
def test_the_page_has_the_printed_numbers_of_parameters_and_ours(name):
    lines = lines_of(name)
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(lines)


def test_the_page_has_the_parameters_that_duan_et_al_add():
    added = count_parameters("capsule_transformer_big")
    added -= count_parameters("capsule_transformer_big", encoder_routing="none", decoder_routing="none")
    assert f"| capsule-Transformer-Big |  |  | 1.6K | {added:,} |" in PAGE.read_text().splitlines()
