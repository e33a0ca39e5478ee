"""`make demo` and `make demo-summarization` with the same steps, but with too few updates to learn."""

import os
import subprocess

import pytest

from tests.integration.preparing import copy_checkout
from tests.integration.warm_commands import warm_path


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture
def demo(checkout, tmp_path):
    def run(*arguments):
        finished = subprocess.run(
            [checkout / "scripts/demo.sh", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PATH": warm_path()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return finished.returncode, finished.stdout

    return run


@pytest.mark.parametrize(
    "kind, measure, label, translations",
    [
        ((), "detokenised sacreBLEU = ", "  translation ", "translations.de"),
        pytest.param(("--summarize",), "ROUGE-L F1 = ", "  headline ", "translations.summary", marks=pytest.mark.slow),
    ],
)
def test_a_short_demo_runs_all_steps_and_resumes(demo, tmp_path, kind, measure, label, translations):
    out = tmp_path / "demo"
    options = (*kind, "--train", 60, "--test", 6, "--updates", 60)
    status, output = demo(*options, "--at-least", 0, out)
    assert status == 0, output
    assert "update 60: loss" in output
    assert measure in output
    assert output.count(label) == 5
    assert output.count("  reference ") == 5
    assert len((out / "run/evaluation/test" / translations).read_text().splitlines()) == 6
    if kind:  # both demos end in the same way
        return
    assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")

    # The model is already trained, so it is only scored.
    status, output = demo(*options, "--at-least", 80, out)
    assert status == 1
    assert "is below 80: the model has not learnt" in output.splitlines()[-1]
