"""`make demo` and `make demo-summarization` with the same steps, but with too few updates to learn."""

import os
import subprocess

import pytest

from tests.integration.preparing import copy_checkout
from tests.integration.warm_commands import warm_path


@pytest.mark.parametrize(
    "kind, least, end, measure, label, language",
    [
        ((), "80", "is below 80: the model has not learnt", "detokenised sacreBLEU = ", "  translation ", "de"),
        pytest.param(
            *(("--summarize",), "0", "is at least 0: the model has learnt.", "ROUGE-L F1 = ", "  headline ", "summary"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_short_demo_runs_all_steps(tmp_path, kind, least, end, measure, label, language):
    checkout, out = tmp_path / "checkout", tmp_path / "demo"
    checkout.mkdir()
    sizes = ("--train", "60", "--test", "6", "--updates", "60", "--at-least", least)
    finished = subprocess.run(
        [copy_checkout(checkout) / "scripts/demo.sh", *kind, *sizes, out],
        env={**os.environ, "PATH": warm_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = finished.stdout
    assert (finished.returncode == 0) == (least == "0"), output
    assert end in output.splitlines()[-1]
    assert "update 60: loss" in output
    assert measure in output
    assert output.count(label) == output.count("  reference ") == 5
    assert len((out / f"run/evaluation/test/translations.{language}").read_text().splitlines()) == 6
    if not kind:
        assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
