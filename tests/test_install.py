"""scripts/install.sh, in a checkout whose Python is a stub. Nothing is installed."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.pythons import FAIRSEQ, PYTHONS, WITHOUT

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "fairseq_capsule/__init__.py"
MISSING = "ERROR: No matching distribution found for ve-fairseq==0.12.3"
WHEEL = "--requirement scripts/fairseq-wheels.txt"

# PLACE is where the package is installed, INSTALLED which distributions there are, REFUSAL what pip says of the wheel,
# VERSION that of this Python, LACKS which of pip, venv and Python.h it has not.
PYTHON = """#!/bin/bash
case "$*" in
    -I*) echo "$PLACE" ;;
    *version_info*) echo "$VERSION" ;;
    *"pip --version") [[ $LACKS != *pip* || -e pip.log ]] ;;
    *"import ensurepip, venv") [[ $LACKS != *venv* ]] ;;
    *Python.h*) [[ $LACKS != *Python.h* ]] ;;
    *" ensurepip" | *"-m venv .venv") echo "$*" >>pip.log ;;
    *"import torchaudio") exit 1 ;;
    *" show "*) [[ " $INSTALLED " == *" ${!#} "* ]] ;;
    *" install "* | *" uninstall "*)
        echo "$*" >>pip.log
        [[ -z $REFUSAL || $* != *--requirement* ]] || { echo "$REFUSAL" >&2; exit 1; } ;;
esac
"""
# Of the system the script finds only these, and a compiler.
TOOLS = ("bash", "cat", "cksum", "dirname", "env", "flock", "grep", "mkdir", "realpath", "rm", "sed")


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a stub as the Python of .venv. It writes the calls of pip to pip.log."""
    for name in ("scripts/install.sh", "constraints.txt", "pyproject.toml", "scripts/fairseq-wheels.txt", PACKAGE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    for name in (".venv/bin/python", ".venv/bin/fairseq-capsule", "tools/python3", "tools/c++"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PYTHON if "python" in name else "#!/bin/sh\n")
        path.chmod(0o755)
    for name in TOOLS:
        (tmp_path / "tools" / name).symlink_to(shutil.which(name))
    return tmp_path


def install(checkout, *sets, place=None, refusal="", installed="", **variables):
    place = str(place or checkout / PACKAGE)
    stub = {"PLACE": place, "REFUSAL": refusal, "INSTALLED": installed, "VERSION": PYTHONS[0], "LACKS": ""}
    environment = {**os.environ, "PATH": str(checkout / "tools"), "PYTHON": "", "FAIRSEQ": "", **stub, **variables}
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
    assert install(checkout, "docs") == (0, "", [])  # dev contains it


def test_what_dev_leaves_out_is_installed_beside_it(checkout):
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    of_dev, names = set(), {"dev"}
    while names:
        name = names.pop()
        of_dev.add(name)
        text = " ".join(extras[name])
        names |= {part for inner in re.findall(r"fairseq-capsule\[(.*?)\]", text) for part in inner.split(",")} - of_dev
    install(checkout)
    asked = {name: install(checkout, name)[2] for name in extras}
    assert (
        {name for name, calls in asked.items() if calls}
        == {"japanese", "korean"}
        == extras.keys() - of_dev - {"fairseq"}
    )


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


@pytest.mark.parametrize("version", ["3.10", *PYTHONS, "3.99"])
@pytest.mark.parametrize("has_environment", [True, False])
def test_fairseq_is_installed_on_the_pythons_of_pyproject_and_refused_on_others(checkout, has_environment, version):
    """Also where README's example has made .venv with another Python."""
    if not has_environment:
        shutil.rmtree(checkout / ".venv")
    status, errors, calls = install(checkout, "train", VERSION=version)
    if has_environment and version in FAIRSEQ:
        assert (status, errors) == (0, "")
    elif version in FAIRSEQ:
        assert calls == ["-m venv .venv"]  # the stub makes none, so that the script fails then
    else:
        assert status == 1 and not calls and errors.count("\n") == 1
        assert f"{'.venv has' if has_environment else 'python3 is'} {version}" in errors and "apt" not in errors
        assert f"with uv (uv venv --python {FAIRSEQ[-1]}), pyenv or conda" in errors
        assert ("its import and Hydra's commands fail" in errors) == (version in WITHOUT)


def test_a_system_without_python_is_told_where_one_comes_from(checkout):
    shutil.rmtree(checkout / ".venv")
    (checkout / "tools/python3").unlink()
    status, errors, _ = install(checkout, "train")
    assert status == 1 and "with venv, and there is none; make .venv with uv (" in errors and "apt" not in errors


def test_a_python_without_venv_is_named_with_its_package(checkout):
    shutil.rmtree(checkout / ".venv")
    status, errors, calls = install(checkout, "train", VERSION="3.12", LACKS="venv")
    assert (status, calls) == (1, []) and "python3 has no venv (Debian: apt install python3.12-venv)" in errors


def test_an_environment_without_pip_gets_it(checkout):
    """`uv venv` makes such an environment."""
    status, errors, calls = install(checkout, "train", LACKS="pip")
    assert (status, errors, calls[0]) == (0, "", "-m ensurepip")


@pytest.mark.parametrize(
    "sets, arguments, what",
    [
        (["train"], {"refusal": MISSING, "VERSION": FAIRSEQ[-1]}, "fairseq"),
        (["train"], {"FAIRSEQ": "source"}, "fairseq"),
        (["dev"], {}, "eflomal"),
        (["alignment"], {}, "eflomal"),
        (["test", "plot"], {}, ""),
    ],
)
@pytest.mark.parametrize("lacks", ["c++", "Python.h"])
def test_only_what_is_compiled_needs_a_compiler_and_says_so_first(checkout, sets, arguments, what, lacks):
    if lacks == "c++":
        (checkout / "tools/c++").unlink()
    status, errors, calls = install(checkout, *sets, LACKS=lacks, **arguments)
    assert status == (1 if what else 0)
    if what:
        package = "g++" if lacks == "c++" else f"python{arguments.get('VERSION', PYTHONS[0])}-dev"
        assert errors.startswith(f"install: error: {what}") and errors.endswith(f"(Debian: apt install {package})\n")
        assert not any("torch" in call for call in calls)
