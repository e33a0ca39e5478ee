"""`scripts/reproduce.sh` at the smoke scale, from nothing to the printed table."""

import os
import re
import subprocess

import pytest

from fairseq_capsule_lab.tables.definitions import table_names
from tests.integration.commands import REPOSITORY
from tests.integration.warm_commands import warm_path

SCRIPT = REPOSITORY / "scripts" / "reproduce.sh"


def reproduce(folder, *arguments):
    places = ["--runs", folder / "runs", "--data", folder / "data"]
    command = [SCRIPT, *arguments, "--scale", "smoke", "--cores", "1", *places]
    finished = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "PATH": warm_path(), "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout, finished.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of all tests: rows that tables share are run once."""
    return tmp_path_factory.mktemp("reproduce")


def test_a_table_is_made_from_nothing(folder):
    output, _ = reproduce(folder, "duan-table2", "--rows", "Transformer", "encoder")
    encoder = next(line for line in output.splitlines() if line.startswith("| encoder |"))
    _, _, paper, bleu, parameters, _ = (cell.strip() for cell in encoder.split("|"))
    # After six updates both scores may be 0. Then there is no difference and no p.
    ours = re.fullmatch(r"\d+\.\d\d \(([+-]\d+\.\d\d)(, p [01]\.\d{3})?\)", bleu)
    assert paper == "24.87" and ours and (ours[2] or ours[1] == "+0.00"), bleu
    assert int(parameters.replace(",", "")) > 100_000
    assert "- Missing: *decoder*: BLEU, parameters: not trained." in output
    assert "toy stands for wmt17-zh-en; tokenised BLEU" in output
    again, said = reproduce(folder, "duan-table2", "--rows", "Transformer", "encoder")
    assert "Nothing to be done" in said and encoder in again


@pytest.mark.slow
@pytest.mark.parametrize("name", table_names())
def test_every_table_can_be_reproduced(folder, name):
    output, _ = reproduce(folder, name)
    missing = [line for line in output.splitlines() if line.startswith("- Missing") and "no split" not in line]
    # Alignments need eflomal, an optional extra.
    assert all("eflomal" in line for line in missing), missing
