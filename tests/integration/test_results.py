"""The tables in experiments/results/ come from the archives there, by one command and without training."""

import csv
import os
import subprocess
from itertools import chain

import pytest

from tests.integration.commands import REPOSITORY
from tests.integration.preparing import copy_checkout
from tests.integration.warm_commands import warm_path

RESULTS = REPOSITORY / "experiments/results"
TABLES = sorted(path.stem for path in RESULTS.glob("*.md"))


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    checkout = copy_checkout(tmp_path_factory.mktemp("checkout"), "experiments")
    finished = subprocess.run(
        [checkout / "experiments/rebuild-results.sh", folder],
        env={**os.environ, "PATH": warm_path(), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    claims = finished.stdout[finished.stdout.index("| claim |") :]
    assert claims in (REPOSITORY / "docs/results.md").read_text(encoding="utf-8")
    return folder


@pytest.mark.parametrize("table", TABLES)
def test_every_table_and_its_plots_are_rebuilt(rebuilt, table):
    """The last digits of the figures depend on the processor."""
    made, committed = ((folder / f"{table}.md").read_text() for folder in (rebuilt, RESULTS))
    assert made == committed
    for name in (table, f"{table}-curves"):
        require_equal_figures(rebuilt, name)


def require_equal_figures(rebuilt, name):
    made, committed = (list(csv.reader((folder / f"{name}.csv").open())) for folder in (rebuilt, RESULTS))
    assert [len(row) for row in made] == [len(row) for row in committed]
    for ours, theirs in zip(chain(*made), chain(*committed)):
        assert ours == theirs or float(ours) == pytest.approx(float(theirs), rel=1e-6)
    assert (rebuilt / f"{name}.png").stat().st_size > 10_000
