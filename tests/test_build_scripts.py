"""check_package.py and docs.sh delete nothing that they did not make. Stand-ins replace what they call."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"

# The Python of .venv, that of the wheel's environment, and fairseq-capsule.
PYTHON = """#!/bin/bash
case "$*" in
    "-m build "*) mkdir "$5" && echo new >"$5/capsule-2.tar.gz" && cp "$WHEEL" "$5/capsule-2.whl" && exit "$BUILD" ;;
    "-m venv "*) mkdir -p "$4/bin" "$4/lib" && cp "$0" "$4/bin/python" && cp "$0" "$4/bin/fairseq-capsule" ;;
    "-c import "*) echo "${0%/bin/*}/lib" ;;
    "inspect "*) mkdir pages && echo page >pages/index.html ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a folder `out`, which has an earlier package and files of others."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "fairseq_capsule").mkdir()
    for name in ("check_package.py", "docs.sh", "common.sh"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "out/folder").mkdir(parents=True)
    zipfile.ZipFile(tmp_path / "wheel", "w", strict_timestamps=False).close()
    for name in ("capsule-1.whl", "capsule-2.whl", "folder/notes"):
        (tmp_path / "out" / name).write_text("old")
    return tmp_path


def run(checkout, script, out, build=0):
    environment = {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(checkout),
        "BUILD": str(build),
        "WHEEL": str(checkout / "wheel"),
    }
    program = [sys.executable] if script.endswith(".py") else []
    done = subprocess.run(
        [*program, checkout / "scripts" / script, out], env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stderr


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes().strip() for path in folder.rglob("*") if path.is_file()}


def test_a_package_that_passed_is_moved_beside_what_is_there(checkout):
    before = files(checkout)
    assert run(checkout, "check_package.py", checkout / "out") == (0, "")
    built = {"capsule-2.tar.gz": b"new", "capsule-2.whl": before["wheel"]}
    assert files(checkout) == {**before, **{f"out/{name}": content for name, content in built.items()}}
    assert run(checkout, "check_package.py", checkout / "new/dist") == (0, "")
    assert files(checkout / "new/dist") == built


def test_a_package_that_failed_changes_nothing(checkout):
    before = files(checkout)
    status, error = run(checkout, "check_package.py", checkout / "out", build=1)
    assert (status, error) == (1, "\ncheck_package.py: python -m build failed\n")
    assert files(checkout) == before


def test_only_a_site_is_replaced_by_a_site(checkout):
    before = files(checkout)
    status, error = run(checkout, "docs.sh", checkout / "out")
    assert status == 1 and "/out is not a site that this script made: delete it, or name another folder" in error
    assert files(checkout) == before
