"""`fairseq-capsule nll`, compared with fairseq-validate."""

import json
import re

import pytest

from fairseq_capsule_lab.cli import main
from tests.integration.commands import run


@pytest.mark.parametrize("split", ["valid", "test"])
def test_nll_equals_that_of_fairseq_validate(data, trained, capsys, split):
    checkpoint = str(trained / "checkpoint_last.pt")
    assert main(["nll", checkpoint, "--data", str(data), "--split", split, "--json"]) == 0
    output = capsys.readouterr()
    assert "Warning" not in output.err
    row = json.loads(output.out.splitlines()[-1])["rows"][0]
    # Without the last option fairseq skips sentences that do not fill a batch of 8.
    validation = ["--task", "translation", "--valid-subset", split, "--max-tokens", 400, "--cpu"]
    validation += ["--required-batch-size-multiple", 1]
    validated = run("validate", data, "--path", checkpoint, *validation)
    assert row["nll"] == pytest.approx(float(re.search(r"\| nll_loss ([\d.]+)", validated)[1]), abs=1e-3)
    assert row["tokens"] > 20
