"""scripts/install.sh, in a checkout whose Python is a stub. Nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "fairseq_capsule/__init__.py"
MISSING = "ERROR: No matching distribution found for ve-fairseq==0.12.3"
WHEEL = "--requirement scripts/fairseq-wheels.txt"

# PLACE is where the package is installed, INSTALLED which distributions there are, REFUSAL what pip says of the wheel.
PYTHON = """#!/bin/bash
case "$*" in
    -I*) echo "$PLACE" ;;
    *"import torchaudio") exit 1 ;;
    *" show "*) [[ " $INSTALLED " == *" ${!#} "* ]] ;;
    *" install "* | *" uninstall "*)
        echo "$*" >>pip.log
        [[ -z $REFUSAL || $* != *--requirement* ]] || { echo "$REFUSAL" >&2; exit 1; } ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a stub as the Python of .venv. It writes the calls of pip to pip.log."""
    for name in ("scripts/install.sh", "constraints.txt", "pyproject.toml", "scripts/fairseq-wheels.txt", PACKAGE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    for name, program in {"python": PYTHON, "fairseq-capsule": "#!/bin/sh\n"}.items():
        path = tmp_path / ".venv/bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program)
        path.chmod(0o755)
    return tmp_path


def install(checkout, *sets, place=None, refusal="", installed="", **variables):
    place = str(place or checkout / PACKAGE)
    stub = {"FAIRSEQ": "", "PLACE": place, "REFUSAL": refusal, "INSTALLED": installed}
    environment = {**os.environ, **stub, **variables}
    words = ["scripts/install.sh", *sets]
    done = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True)
    log = checkout / "pip.log"
    calls = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return done.returncode, done.stderr, calls


def test_a_set_is_installed_once(checkout):
    status, errors, calls = install(checkout, "train", "plot")
    assert (status, errors) == (0, "")
    assert "--editable .[train,plot]" in calls[-1]
    assert install(checkout, "train") == (0, "", [])
    assert "--editable .[lint]" in install(checkout, "train", "lint")[2][-1]
    assert "--editable .[dev]" in install(checkout)[2][-1]
    assert install(checkout, "docs") == (0, "", [])  # dev contains all sets


def test_a_torchaudio_that_does_not_load_is_removed(checkout):
    assert "uninstall --quiet --yes torchaudio" in install(checkout, "train", installed="torchaudio")[2][-1]
    assert not any("torchaudio" in call for call in install(checkout, "plot")[2])


def test_a_changed_constraint_installs_again(checkout):
    install(checkout, "train")
    with open(checkout / "constraints.txt", "a") as file:
        file.write("six==1.0\n")
    assert "--editable .[train]" in install(checkout, "train")[2][-1]


def test_a_further_set_leaves_fairseq_as_it_is(checkout):
    """Tests of another target may be importing it."""
    install(checkout, "train")
    _, _, calls = install(checkout, "train", "lint", installed="ve-fairseq")
    assert calls and not [call for call in calls if call.endswith((WHEEL, " ve-fairseq"))]
    with open(checkout / "scripts/fairseq-wheels.txt", "a") as file:
        file.write("# another wheel\n")
    _, _, calls = install(checkout, "docs", installed="ve-fairseq")
    assert [call for call in calls if call.endswith(WHEEL)]


def test_a_wheel_with_other_bytes_is_refused(checkout):
    refusal = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
    status, errors, calls = install(checkout, "train", refusal=refusal)
    assert status == 1 and "the wheel of ve-fairseq has another SHA-256" in errors
    assert calls[-1].endswith(WHEEL)


@pytest.mark.parametrize("arguments", [{"refusal": MISSING}, {"FAIRSEQ": "source"}, {"installed": "fairseq-fixed"}])
def test_fairseq_is_compiled_without_a_wheel_or_on_request_or_if_it_was_before(checkout, arguments):
    status, _, calls = install(checkout, "train", **arguments)
    assert status == 0
    assert [call for call in calls if call.endswith("--no-build-isolation fairseq-fixed")]


@pytest.mark.parametrize(
    "installed, source", [("fairseq-fixed", "wheel"), ("fairseq ve-fairseq", "wheel"), ("ve-fairseq", "source")]
)
def test_another_fairseq_is_removed_first(checkout, installed, source):
    _, _, calls = install(checkout, "train", installed=installed, FAIRSEQ=source)
    removal = next(number for number, call in enumerate(calls) if call.endswith("ve-fairseq fairseq-fixed fairseq"))
    installation = next(n for n, call in enumerate(calls) if call.endswith((WHEEL, "-isolation fairseq-fixed")))
    assert "uninstall" in calls[removal] and removal < installation


@pytest.mark.parametrize("has_python", [True, False])
def test_an_environment_whose_checkout_was_moved_is_refused(checkout, has_python):
    """Its commands begin with the former path of its Python."""
    install(checkout, "train")
    if not has_python:
        (checkout / ".venv/bin/python").unlink()
    assert install(checkout, "train", PLACE="") == (
        1,
        "install: error: .venv belongs to another place or is damaged, and its commands may fail; "
        "remove .venv and run make install\n",
        [],
    )
