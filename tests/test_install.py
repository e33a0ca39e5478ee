"""scripts/install.sh finds an environment that cannot work here. Nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "fairseq_capsule/__init__.py"


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose .venv is up to date. Its Python is a stub that prints FOUND as the place of the package."""
    for name in ("scripts/install.sh", "constraints.txt", "pyproject.toml", PACKAGE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$FOUND"\n')
    python.chmod(0o755)
    required = "cat constraints.txt pyproject.toml scripts/install.sh | cksum >.venv/installed"
    subprocess.run(["bash", "-c", required], cwd=tmp_path, check=True)
    return tmp_path


def installed(checkout, found):
    environment = {**os.environ, "FOUND": str(found)}
    done = subprocess.run(["scripts/install.sh"], cwd=checkout, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_an_environment_that_is_up_to_date_is_kept(checkout):
    assert installed(checkout, checkout / PACKAGE) == (0, "")


def test_the_environment_of_another_checkout_is_a_warning(checkout):
    (checkout / "other/fairseq_capsule").mkdir(parents=True)
    status, errors = installed(checkout, checkout / "other" / PACKAGE)
    assert status == 0 and errors.startswith("install: warning: .venv belongs to another checkout: ")


@pytest.mark.parametrize("has_python", [True, False])
def test_an_environment_whose_checkout_was_moved_is_refused(checkout, has_python):
    """Its commands begin with the former path of its Python."""
    if not has_python:
        (checkout / ".venv/bin/python").unlink()
    assert installed(checkout, "") == (
        1,
        "install: error: .venv belongs to another place or is damaged, and its commands may fail; "
        "remove .venv and run make install\n",
    )
