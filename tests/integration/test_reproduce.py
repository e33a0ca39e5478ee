"""`scripts/reproduce.sh` at the smoke scale, from nothing to the printed table."""

import os
import re
import subprocess

import pytest

from experiments.tables.definitions import table_names
from tests.integration.preparing import copy_checkout
from tests.integration.warm_commands import warm_path


def reproduce(checkout, *arguments):
    places = ["--runs", checkout / "runs", "--data", checkout / "data"]
    command = [checkout / "scripts/reproduce.sh", *arguments, "--scale", "smoke", "--cores", "1", *places]
    finished = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "PATH": warm_path(), "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout, finished.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout for all tests: rows that tables share are run once."""
    # The workflow calls the scripts of the package's checkout.
    packages = ("fairseq_capsule", "fairseq_capsule_lab", "experiments")
    return copy_checkout(tmp_path_factory.mktemp("reproduce"), *packages)


def test_a_table_is_made_from_nothing(checkout):
    output, _ = reproduce(checkout, "duan-table2", "--rows", "Transformer", "--rows", "encoder")
    encoder = next(line for line in output.splitlines() if line.startswith("| encoder |"))
    _, _, paper, bleu, parameters, _ = (cell.strip() for cell in encoder.split("|"))
    # After six updates both scores may be 0. Then there is no difference and no p.
    ours = re.fullmatch(r"\d+\.\d\d \(([+-]\d+\.\d\d)(, p [01]\.\d{3})?\)", bleu)
    assert paper == "24.87" and ours and (ours[2] or ours[1] == "+0.00"), bleu
    assert int(parameters.replace(",", "")) > 100_000
    assert "- Missing: *decoder*, *encoder and decoder*: BLEU, parameters: not trained." in output
    assert "toy stands for wmt17-zh-en; tokenised BLEU" in output
    again, _ = reproduce(checkout, "duan-table2", "--rows", "Transformer", "--rows", "encoder")
    assert "nothing to be done" in again and encoder in again


@pytest.mark.slow
# The rows of attention-seeds are figures of the past: what trained them is in the history alone.
@pytest.mark.parametrize("name", sorted({*table_names()} - {"attention-seeds"}))
def test_every_table_can_be_reproduced(checkout, name):
    output, _ = reproduce(checkout, name)
    missing = [line for line in output.splitlines() if line.startswith("- Missing") and "no split" not in line]
    # Alignments need eflomal, an optional extra.
    assert all("eflomal" in line for line in missing), missing
