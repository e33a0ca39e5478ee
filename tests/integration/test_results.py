"""The figures of docs/results.md come from results/multi30k.tar.xz, by one command and without training."""

import os
import re
import subprocess

import pytest

from tests.integration.commands import REPOSITORY
from tests.integration.warm_commands import warm_path

TABLES = ("comparison", "comparison-lstm", "comparison-variants")
LARGEST = 3_000_000


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    finished = subprocess.run(
        [REPOSITORY / "scripts" / "rebuild-results.sh", folder],
        env={**os.environ, "PATH": warm_path(), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.mark.parametrize("kind", ["md", "csv"])
@pytest.mark.parametrize("name", [f"{table}{part}" for table in TABLES for part in ("", "-curves")])
def test_every_table_is_rebuilt(rebuilt, name, kind):
    made, committed = ((folder / f"{name}.{kind}").read_text() for folder in (rebuilt, REPOSITORY / "results"))
    assert made == committed


@pytest.mark.parametrize("name", [f"{table}{part}" for table in TABLES for part in ("", "-curves")])
def test_every_plot_is_drawn(rebuilt, name):
    assert (rebuilt / f"{name}.png").stat().st_size > 10_000


def test_the_archive_is_small():
    assert (REPOSITORY / "results" / "multi30k.tar.xz").stat().st_size < LARGEST


def rows(text):
    """The cells of each row of the tables in a text, by label; a minus sign is written as a hyphen."""
    found = {}
    for line in text.replace("−", "-").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) > 1:
            found.setdefault(cells[0].strip(), set()).update(cells[1:])
    return found


@pytest.mark.parametrize("document", ["docs/results.md", "README.md"])
def test_the_tables_of_the_documents_have_these_figures(document):
    """Each cell with a figure is a cell of the same row in results/."""
    known = {}
    for table in TABLES:
        for label, cells in rows((REPOSITORY / "results" / f"{table}.md").read_text()).items():
            known.setdefault(label, set()).update(cells)
    checked = 0
    for label, cells in rows((REPOSITORY / document).read_text()).items():
        if label not in known:
            continue
        for cell in cells:
            if re.search(r"\d", cell):
                assert cell in known[label], (label, cell)
                checked += 1
    assert checked > 20
