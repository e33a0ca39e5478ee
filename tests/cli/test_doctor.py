"""`fairseq-capsule doctor`: sound, missing and broken environments."""

import re
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from packaging.markers import default_environment

from fairseq_capsule_lab.processes import FORKS
from tests.pythons import FAIRSEQ, PYTHONS, WITHOUT


@pytest.fixture
def versions(monkeypatch):
    """Versions of distributions in place of the installed ones; None for one that is not installed."""
    changed = {}

    def version(name, real=metadata.version):
        if changed.get(name, "") is None:
            raise metadata.PackageNotFoundError(name)
        return changed.get(name) or real(name)

    monkeypatch.setattr(metadata, "version", version)
    return changed


@pytest.fixture
def found(command):
    """Run the command. Return the row of a check."""

    def run(name):
        result = command("doctor")
        assert (result.status == 0) == ("FAIL" not in result.out) == result.out.endswith("nothing to fix\n")
        row = re.search(rf"(?m)^(\w+) +{name}  +(.*)(?:\n +fix: (.*))?", result.out)
        return SimpleNamespace(status=row[1], detail=row[2], fix=row[3])

    return run


def test_this_environment_is_sound(command):
    result = command("doctor")
    *lines, versions, last = result.out.splitlines()
    assert (result.status, last) == (0, "nothing to fix")
    assert f"torch {metadata.version('torch')}" in versions
    assert {"Python", "torch", "numpy", "sacrebleu", "GPU", "fairseq"} <= {line[6:].split(" ")[0] for line in lines}


def test_without_fairseq_it_says_what_fairseq_is_for(command, found, monkeypatch, versions):
    """As in an environment of `pip install '.[huggingface]'`."""
    monkeypatch.setitem(sys.modules, "fairseq", None)
    versions |= dict.fromkeys(FORKS)
    row = found("fairseq")
    assert (row.status, row.detail) == ("info", "not installed; only training and translating with fairseq need it")
    assert row.fix.endswith(("ve-fairseq==0.12.3", "fairseq-fixed==0.12.3.1"))
    assert command("doctor").out.splitlines()[-1] == "nothing to fix"


def test_a_package_that_fails_to_import_is_named_with_its_reason(command, monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("print('Hello'); raise OSError('libcudart.so.12: cannot open\\nand more')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch")
    result = command("doctor")
    assert result.status == 1 and "FAIL  GPU               OSError: libcudart.so.12: cannot open\n" in result.out
    assert result.out.endswith("1 to fix: GPU\n") and "Hello" in result.err


@pytest.mark.parametrize(
    "version, status", [("3.10.2", "FAIL"), *((f"{python}.2", "ok") for python in PYTHONS), ("3.99.1", "warn")]
)
def test_only_required_and_tested_pythons_are_accepted(found, monkeypatch, version, status):
    monkeypatch.setattr("platform.python_version", lambda: version)
    assert found("Python").status == status


@pytest.mark.parametrize("version, detail", [(None, "not installed"), ("1.5.1", "1.5.1")])
def test_a_missing_or_old_package_fails(found, versions, version, detail):
    versions["sacrebleu"] = version
    row = found("sacrebleu")
    assert (row.status, row.fix) == ("FAIL", "pip install 'sacrebleu>=2.3'")
    assert row.detail == f"{detail}; fairseq-capsule requires >=2.3"


def test_two_fairseqs_are_refused(found, versions):
    versions |= {"fairseq": "0.12.2", "fairseq-fixed": None, "ve-fairseq": "0.12.3"}
    row = found("fairseq")
    assert (row.status, row.detail) == ("FAIL", "fairseq 0.12.2 and ve-fairseq 0.12.3 overwrite each other: keep one")
    assert row.fix.startswith("pip uninstall -y fairseq fairseq-fixed ve-fairseq && ")


def test_where_fairseq_has_no_wheel_a_compiler_is_needed(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "fairseq.libbleu", None)  # not compiled
    machine = {**default_environment(), "platform_machine": "aarch64"}
    monkeypatch.setattr("packaging.markers.default_environment", lambda: machine)
    monkeypatch.setattr("shutil.which", lambda tool: None)
    row = found("fairseq")
    assert row.status == "FAIL" and "fairseq.libbleu" in row.detail
    assert row.fix.startswith("install a C++ compiler ") and "--no-build-isolation fairseq-fixed==" in row.fix


@pytest.mark.parametrize("installed", [True, False])
def test_where_fairseq_fails_another_python_is_named(found, monkeypatch, versions, installed):
    """Its import fails there, whatever fork is compiled."""
    versions |= dict.fromkeys(FORKS) | ({"fairseq-fixed": "0.12.3.1"} if installed else {})
    monkeypatch.setitem(sys.modules, "fairseq", None)
    machine = {**default_environment(), "python_version": WITHOUT[0]}
    monkeypatch.setattr("packaging.markers.default_environment", lambda: machine)
    row = found("fairseq")
    assert row.status == ("FAIL" if installed else "info")
    assert installed or row.detail.endswith("; on this Python its import and the commands of Hydra fail")
    assert row.fix == f"for fairseq take an environment with Python {FAIRSEQ[-1]}: uv venv --python {FAIRSEQ[-1]}"


@pytest.mark.parametrize("driver, status", [(None, "ok"), ("/bin/nvidia-smi", "warn")])
def test_a_gpu_that_torch_does_not_see_is_reported(found, monkeypatch, driver, status):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("shutil.which", lambda tool: driver)
    row = found("GPU")
    assert row.status == status and ("sees no GPU" in row.detail) == (driver is not None)


def test_the_libraries_of_bleu_are_named(found, monkeypatch):
    for language, extra in (("ja", "japanese"), ("ko", "korean")):
        monkeypatch.delitem(sys.modules, f"sacrebleu.tokenizers.tokenizer_{language}_mecab", raising=False)
        monkeypatch.setitem(sys.modules, {"ja": "MeCab", "ko": "mecab_ko"}[language], None)
        row = found(f"BLEU of {language}")
        assert (row.status, row.fix) == ("info", f"pip install 'fairseq-capsule[{extra}]'")
        assert row.detail == f"{language}-mecab: not installed; only scores of this language need it"


def test_other_commands_name_it_if_a_library_is_missing(refused, monkeypatch, generated, reference):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    message = refused("score", generated, reference)
    assert "tqdm" in message and message.endswith("; 'fairseq-capsule doctor' states what to install")
