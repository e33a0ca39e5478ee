"""`make demo` and `make demo-summarization` with too few updates to learn: all steps, both endings, and resuming."""

import os
import subprocess

import pytest

from tests.integration.preparing import copy_checkout
from tests.integration.warm_commands import warm_path


@pytest.mark.parametrize(
    "kind, measure, label, language",
    [
        ([], "detokenised sacreBLEU = ", "  translation ", "de"),
        pytest.param(["--summarize"], "ROUGE-L F1 = ", "  headline ", "summary", marks=pytest.mark.slow),
    ],
)
def test_a_short_demo_runs_all_steps_and_resumes(tmp_path, kind, measure, label, language):
    checkout, out = tmp_path / "checkout", tmp_path / "demo"
    checkout.mkdir()
    script = copy_checkout(checkout) / "scripts/demo.sh"

    def run(least):
        finished = subprocess.run(
            [script, *kind, "--train", "60", "--test", "6", "--updates", "60", "--at-least", least, out],
            env={**os.environ, "PATH": warm_path()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return finished.returncode, finished.stdout

    status, output = run("0")
    assert status == 0, output
    assert output.splitlines()[-1].endswith("is at least 0: the model has learnt.")
    assert "update 60: loss" in output
    assert measure in output
    assert output.count(label) == output.count("  reference ") == 5
    assert len((out / f"run/evaluation/test/translations.{language}").read_text().splitlines()) == 6
    if not kind:
        assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
    status, output = run("80")
    assert status != 0 and "is below 80: the model has not learnt" in output.splitlines()[-1]
    assert "finished, nothing to do" in output and "generate.out: done before" in output
