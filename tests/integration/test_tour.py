"""examples/tour.ipynb is executed: with an existing model, and with a model that it trains."""

import os

import pytest

from tests.cli.world import make_world
from tests.integration.commands import REPOSITORY
from tests.libraries import library

nbformat = library("nbformat")
nbclient = library("nbclient")
NOTEBOOK = REPOSITORY / "examples/tour.ipynb"


def execute(tour, monkeypatch, **variables):
    """Return the outputs of every cell by its id: a list of content types and contents."""
    for name, value in {"TOUR": tour, **variables}.items():
        monkeypatch.setenv(name, str(value))
    # Without this variable the kernel shows what programs print, as it does outside pytest.
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    client.execute()
    return {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def text_of(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


def check(outputs, tour):
    assert [line.split()[0] for line in text_of(outputs["translate"]).splitlines()] == [
        "source",
        "translation",
        "reference",
    ]
    assert any("past_future" in output.get("data", {}).get("text/plain", "") for output in outputs["inspect"])
    assert "FUTURE" in text_of(outputs["shares"])
    for name in ("past-future", "attention"):
        assert any("image/png" in output.get("data", {}) for output in outputs[name]), outputs[name]
    assert (tour / "sentence.html").is_file() and (tour / "sentence.npz").is_file()


def test_the_tour_runs_with_an_existing_model(tmp_path, monkeypatch):
    make_world(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "model.pt").rename(tmp_path / "run/checkpoint_last.pt")
    (tmp_path / "codes").rename(tmp_path / "data/codes")
    (tmp_path / "data/raw").symlink_to("bpe")
    check(execute(tmp_path, monkeypatch), tmp_path)


@pytest.mark.slow
def test_the_tour_runs_with_a_model_that_it_trains(tmp_path, monkeypatch):
    outputs = execute(tmp_path / "tour", monkeypatch, TOUR_UPDATES=4, TOUR_PAIRS=300)
    assert "4 updates" in text_of(outputs["train"])
    check(outputs, tmp_path / "tour")


def test_no_outputs_are_committed():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
