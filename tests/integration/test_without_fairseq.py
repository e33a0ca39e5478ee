"""An exported model in an environment with the wheel and the pinned versions, in which fairseq is not installed."""

import shutil
import subprocess
import sys

import pytest

from tests.cli.world import make_world
from tests.huggingface.program import TRANSLATING
from tests.integration.commands import REPOSITORY
from tests.processes import run_forked

PACKAGED = "fairseq_capsule fairseq_capsule_lab pyproject.toml setup.py MANIFEST.in README.md LICENSE".split()


def call(*command, **options):
    finished = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment that has the wheel, with the extra `huggingface`, and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    sources = folder / "sources"
    sources.mkdir()
    for name in PACKAGED:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(REPOSITORY / name, sources)
    call(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "dist", sources)
    (wheel,) = (folder / "dist").iterdir()
    call(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env/bin/python"
    pinned = ("--constraint", REPOSITORY / "constraints.txt")
    call(python, "-m", "pip", "install", "--quiet", *pinned, f"{wheel}[huggingface]")
    return python


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_exported_model_translates_where_fairseq_is_not_installed(tmp_path, python):
    make_world(tmp_path / "world")
    world = tmp_path / "world"
    words = ["export", world / "model.pt", world / "prepared", tmp_path / "out", "--to", "transformers"]
    finished = run_forked("fairseq_capsule_lab.cli", "main", words, REPOSITORY)
    assert finished.returncode == 0, finished.stderr
    packages = call(python, "-m", "pip", "list", "--format", "freeze").lower()
    assert "transformers==" in packages and "fairseq-capsule==" in packages
    assert "fairseq==" not in packages.replace("fairseq-capsule==", "")
    output = call(python, "-c", TRANSLATING, tmp_path / "out", "left", input="a b\nc d e\n", cwd=tmp_path)
    assert len(output.splitlines()) == 2
    call(python, "-m", "pip", "check")
