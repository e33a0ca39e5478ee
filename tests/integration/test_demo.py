"""`make demo`, shortened: too few updates to learn, the same steps."""

import os
import subprocess

import pytest

from tests.integration.commands import REPOSITORY


def demo(*arguments):
    finished = subprocess.run(
        [REPOSITORY / "scripts/demo.sh", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return finished.returncode, finished.stdout


def test_the_demo_in_short(tmp_path):
    out = tmp_path / "demo"
    status, output = demo("--train", 1500, "--updates", 60, "--at-least", 0, out)
    assert status == 0, output
    assert "update 60: loss" in output
    assert "detokenised sacreBLEU = " in output
    assert output.count("translation ") == 5
    assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert len((out / "translations.de").read_text().splitlines()) == 500

    status, output = demo("--train", 1500, "--updates", 60, "--at-least", 80, out)  # trained already: only scored
    assert status == 1
    assert "below 80: it has not learnt" in output.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "name the folder OUT to make"),
        (["--updates", 5, "out"], "--updates 5: at least 60"),
        (["--train", "many", "out"], "--train wants a positive whole number, not 'many'"),
        (["/dev/null"], "/dev/null"),
        (["--fast", "out"], "no option --fast"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    status, output = demo(*arguments)
    assert status == 1
    assert message in output.splitlines()[-1]
    assert not os.path.exists("out")
