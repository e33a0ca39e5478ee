"""scripts/try-python.sh, with stubs of Python, pip and make. Nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
STUBS = {
    "git": 'mkdir -p "$4" && cp "$3/README.md" "$4"',
    "python3.13": '[[ $* == "-m venv .venv" ]] && mkdir -p .venv/bin && touch .venv/bin/activate',
    "pip": '[[ $* == *"install torch"* ]]',
    "python": "grep -q generate example.py && echo translated",
    "make": """
case $1 in
    "$FAILING") echo "install: error: no fairseq"; echo "make: *** [Makefile:1: $1] Error 1" >&2; exit 1 ;;
    demo) echo "BLEU 84.2 on unseen sentences" ;;
    test) printf '%s\\n' "1 failed, 12 passed in 3 s" "make: *** [Makefile:1: test] Error 1"; exit 1 ;;
esac""",
}


@pytest.fixture
def tried(tmp_path):
    """Call the script, with a target of make that fails. Return the rows of its table."""
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/try-python.sh", "scripts/common.sh", "README.md"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "tools").mkdir()
    for name, text in STUBS.items():
        (tmp_path / "tools" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "tools" / name).chmod(0o755)

    def call(failing=""):
        environment = {**os.environ, "PATH": f"{tmp_path / 'tools'}:{os.environ['PATH']}", "FAILING": failing}
        words = ["scripts/try-python.sh", "3.13", "out"]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        table = done.stdout.partition("\n\n")[2].splitlines()
        return dict(row.strip("| ").split(" | ") for row in table[2:])

    return call


def test_it_runs_what_readme_shows_and_prints_what_came_of_it(tried):
    expected = {"README's example": "translated", "make demo": "BLEU 84.2 on unseen sentences"}
    assert tried().items() >= {**expected, "make test": "1 failed, 12 passed in 3 s"}.items()


def test_a_command_that_fails_is_shown_with_its_error(tried):
    rows = tried(failing="demo")
    assert (rows["make demo"], rows["README's example"]) == ("install: error: no fairseq", "translated")
