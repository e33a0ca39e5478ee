"""`fairseq-capsule doctor`: sound, missing and broken environments."""

import importlib
import itertools
import json
import os
import re
import subprocess
import sys
from email.message import Message
from importlib import metadata
from types import SimpleNamespace

import pytest

import fairseq_capsule
from fairseq_capsule_lab import environment, stages
from fairseq_capsule_lab.cli.doctor import FIX_TORCH, Diagnosis, checks, diagnose, fix_fairseq, versions
from fairseq_capsule_lab.environment import FORKS, Trouble, requirements
from fairseq_capsule_lab.runs.machine import PACKAGES

HIDE = """
import sys

class Hidden:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *where):
        return None if name.split(".")[0] in {names!r} else self.finder.find_spec(name, *where)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path = [Hidden(finder) for finder in sys.meta_path]
"""


@pytest.fixture
def doctor(tmp_path):
    """Run the doctor in a separate process with `tmp_path` first on its path."""

    def run(*arguments):
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "fairseq_capsule_lab.cli", "doctor", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )

    return run


def statuses(output):
    return {finding["name"]: finding["status"] for finding in json.loads(output)["findings"]}


def test_this_environment_is_sound(command):
    result = command("doctor")
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[-1] == "nothing to fix"
    assert f"python {sys.version.split()[0]}, " in lines[-2]
    assert f"torch {importlib.import_module('torch').__version__}" in lines[-2]
    checked = [line[6:].split("  ")[0] for line in lines if line.startswith(("ok  ", "warn"))]
    assert checked == [name for name, _, _ in checks()]


def test_the_plugin_registers_its_models_in_a_process_of_its_own(doctor):
    done = doctor()
    assert done.returncode == 0, done.stdout


def test_the_output_is_only_json(command):
    report = json.loads(command("doctor", "--json").out)
    assert report["ok"] is True
    assert [finding["name"] for finding in report["findings"]] == [name for name, _, _ in checks()]
    assert report["versions"]["sacrebleu"] == importlib.import_module("sacrebleu").__version__


def test_it_runs_without_torch_and_fairseq(doctor, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(names={"torch", "fairseq", "sacremoses"}))
    done = doctor("--json")
    assert done.returncode == 1, done.stderr
    found = statuses(done.stdout)
    failed = {name for name, status in found.items() if status == "FAIL"}
    assert failed >= {"torch", "fairseq", "compiled modules", "plugin", "sacremoses"}
    assert not failed & {"Python", "hydra-core", "omegaconf", "sacrebleu", "subword-nmt", "matplotlib", "tqdm"}

    table = doctor().stdout.splitlines()
    place = next(number for number, line in enumerate(table) if line.startswith("FAIL  torch "))
    assert table[place].endswith("ModuleNotFoundError: No module named 'torch'")
    assert table[place + 1].strip() == f"fix: {FIX_TORCH.format(requirements()['torch'])}"
    assert any(line.startswith("FAIL  compiled") and "cannot be checked without fairseq" in line for line in table)
    assert table[-1].endswith(f"to fix: {', '.join(name for name in found if name in failed)}")


def test_other_commands_name_it_if_a_library_is_missing(refused, monkeypatch, generated, reference):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    message = refused("score", generated, reference)
    assert "tqdm" in message and message.endswith("; 'fairseq-capsule doctor' states what to install")


def test_every_requirement_of_the_metadata_is_checked():
    names = [name for name, _, _ in checks()]
    for text in metadata.requires("fairseq-capsule"):
        if "extra ==" not in text:
            assert re.match(r"[\w-]+", text)[0] in names


def test_a_package_that_is_not_installed_fails(monkeypatch):
    monkeypatch.setattr(environment, "version_of", lambda distribution: None)
    finding = diagnose("sacrebleu", lambda: environment.library("sacrebleu"), "pip install sacrebleu")
    assert finding == Diagnosis("sacrebleu", "FAIL", "not installed", "pip install sacrebleu")


def changed(before, after):
    return {name: status for name, status in statuses(after).items() if status != statuses(before)[name]}


def test_it_runs_without_packaging(command, monkeypatch):
    before = command("doctor", "--json").out
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    result = command("doctor", "--json")
    first = json.loads(result.out)["findings"][0]
    assert result.status == 1 and changed(before, result.out) == {"fairseq-capsule": "FAIL"}
    assert "packaging.requirements" in first["detail"] and first["fix"] == environment.FIX_PLUGIN


def test_a_package_that_is_used_by_its_path_is_one_warning(command, monkeypatch):
    def installed(name, real=metadata.Distribution.from_name):
        if name == "fairseq-capsule":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    before = command("doctor", "--json").out
    monkeypatch.setattr(metadata.Distribution, "from_name", installed)
    result = command("doctor", "--json")
    report = json.loads(result.out)
    assert result.status == 0 and changed(before, result.out) == {"fairseq-capsule": "warn"}
    warning = report["findings"][0]
    assert warning["detail"].startswith("used by its path, ") and "requirements are not checked" in warning["detail"]
    assert warning["fix"].startswith("pip install -e . ")
    assert report["versions"]["fairseq-capsule"] == fairseq_capsule.__version__


def test_metadata_of_another_version_fails(monkeypatch):
    monkeypatch.setattr(environment, "version_of", lambda distribution: "0.1.0")
    finding = diagnose(*checks()[0])
    code = fairseq_capsule.__version__
    assert finding.detail == f"the code is version {code}, its metadata version 0.1.0: install it again"


@pytest.mark.parametrize(
    "version, status", [("3.10.2", "FAIL"), ("3.11.0", "ok"), ("3.12.0", "ok"), ("3.99.1", "warn")]
)
def test_only_required_and_tested_pythons_are_accepted(monkeypatch, version, status):
    monkeypatch.setattr("platform.python_version", lambda: version)
    assert diagnose("Python", environment.python_version, "fix").status == status


@pytest.mark.parametrize(
    "package, error",
    [
        ("torch", "OSError: libcudart.so.12: cannot open shared object file"),
        ("fairseq", "ValueError: mutable default <class 'CommonConfig'> for field common is not allowed"),
    ],
)
def test_it_runs_with_a_package_that_fails_to_import(doctor, tmp_path, package, error):
    kind, _, message = error.partition(": ")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(f'raise {kind}("{message}\\nand more")\n')
    done = doctor()
    assert done.returncode == 1, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(f"FAIL  {package} "))
    assert line.endswith(error)
    assert "Traceback" not in done.stderr


def test_the_json_contains_no_output_of_packages(command, monkeypatch, tmp_path):
    (tmp_path / "subword_nmt.py").write_text('print("welcome")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "subword_nmt", raising=False)
    result = command("doctor", "--json")
    assert statuses(result.out)["subword-nmt"] == "ok"
    assert "welcome" in result.err


def test_a_torchaudio_that_does_not_load_is_a_warning(monkeypatch, tmp_path):
    assert diagnose("torchaudio", environment.audio, "").status == "ok"
    (tmp_path / "torchaudio.py").write_text("raise OSError('Could not load this library')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    monkeypatch.setattr(environment, "version_of", lambda name: "2.11.0")
    found = diagnose("torchaudio", environment.audio, "")
    assert (found.status, found.fix) == ("warn", "pip uninstall -y torchaudio") and "2.11.0" in found.detail


def test_a_folder_named_fairseq_hides_the_installed_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "fairseq", SimpleNamespace(__file__=None, __path__=["/somewhere/fairseq"]))
    with pytest.raises(Trouble, match="/somewhere/fairseq is not fairseq") as caught:
        environment.fairseq_interface()
    assert caught.value.fix == "rename /somewhere/fairseq"


@pytest.mark.parametrize("names", [FORKS, *itertools.combinations(FORKS, 2)])
def test_two_installed_fairseqs_are_refused(monkeypatch, names):
    """Also where fairseq cannot be imported, because removing one of them deleted files of the other."""
    monkeypatch.setattr(environment, "version_of", dict.fromkeys(names, "0.12").get)
    monkeypatch.setitem(sys.modules, "fairseq", None)
    (check,) = (check for check in checks() if check[0] == "fairseq")
    finding = diagnose(*check)
    assert finding.status == "FAIL"
    assert finding.detail == f"{' and '.join(f'{name} 0.12' for name in names)} overwrite each other: keep one"
    assert finding.fix.startswith("pip uninstall -y fairseq fairseq-fixed ve-fairseq && pip install ")
    assert versions().items() >= dict.fromkeys(names, "0.12").items()


def test_the_manifests_record_every_fairseq():
    assert set(FORKS) <= set(PACKAGES) & set(stages.PACKAGES)


@pytest.mark.parametrize("compared, fork", [("==", "ve-fairseq==0.12.3"), ("!=", "fairseq-fixed==0.12.3.1")])
def test_the_extra_names_the_fairseq_of_the_machine(monkeypatch, compared, fork):
    other = {"==": "!=", "!=": "=="}[compared]
    text = Message()
    text["Requires-Python"] = ">=3.11"
    text["Requires-Dist"] = "torch>=2.6"
    text["Requires-Dist"] = f've-fairseq==0.12.3; sys_platform {compared} "{sys.platform}" and extra == "fairseq"'
    text["Requires-Dist"] = f'fairseq-fixed==0.12.3.1; sys_platform {other} "{sys.platform}" and extra == "fairseq"'
    monkeypatch.setattr(metadata, "metadata", lambda name: text)
    assert f"pip install --no-cache-dir --no-build-isolation {fork}" in fix_fairseq()
    assert ("Python.h" in fix_fairseq()) == fork.startswith("fairseq-fixed")  # it is compiled
    assert [*requirements()] == ["Python", "torch"]


def test_a_fairseq_built_from_source_is_accepted(monkeypatch):
    fairseq = importlib.import_module("fairseq")
    monkeypatch.setattr(environment, "version_of", lambda distribution: None)
    assert environment.fairseq_interface().startswith(fairseq.__version__)


def test_a_fairseq_with_another_interface_is_reported(monkeypatch):
    monkeypatch.delattr("fairseq.models.transformer.TransformerConfig")
    with pytest.raises(Trouble, match="fairseq.models.transformer has no TransformerConfig"):
        environment.fairseq_interface()


@pytest.mark.parametrize("module", environment.COMPILED)
def test_a_module_that_is_not_compiled_is_reported(monkeypatch, module):
    (check,) = (check for check in checks() if check[0] == "compiled modules")
    monkeypatch.setitem(sys.modules, module, None)
    finding = diagnose(*check)
    assert finding.status == "FAIL" and module in finding.detail
    assert finding.fix.startswith(fix_fairseq())


def test_a_plugin_that_registers_nothing_is_reported(monkeypatch):
    monkeypatch.setattr("fairseq.models.MODEL_REGISTRY", {})
    with pytest.raises(Trouble, match="capsule_transformer is not registered"):
        environment.plugin()


def test_a_package_that_is_too_old_fails(monkeypatch):
    monkeypatch.setattr(environment, "version_of", lambda distribution: "1.5.1")
    finding = diagnose(*next(check for check in checks() if check[0] == "sacrebleu"))
    detail = "1.5.1; fairseq-capsule requires >=2.3"
    assert finding == Diagnosis("sacrebleu", "FAIL", detail, "pip install 'sacrebleu>=2.3'")


def fake_torch(cuda=None, available=False, error=None):
    def ones(*shape, device):
        if error:
            raise RuntimeError(error)
        return SimpleNamespace(add=lambda number: SimpleNamespace(item=lambda: 2.0))

    return SimpleNamespace(
        __version__="2.5.0",
        version=SimpleNamespace(cuda=cuda, hip=None),
        ones=ones,
        get_num_threads=lambda: 10_000,
        cuda=SimpleNamespace(
            is_available=lambda: available, device_count=lambda: 2, get_device_name=lambda index: f"GPU {index}"
        ),
    )


@pytest.mark.parametrize(
    "torch, driver, status, detail",
    [
        (fake_torch(), None, "ok", "none; training runs on the CPU"),
        (fake_torch("12.6"), None, "ok", "none; training runs on the CPU"),
        (fake_torch("12.6", True), "/bin/nvidia-smi", "ok", "GPU 0, GPU 1"),
        (fake_torch(), "/bin/nvidia-smi", "warn", "nvidia-smi is there, but torch, built for the CPU, sees no GPU"),
        (fake_torch("12.6"), "/bin/nvidia-smi", "warn", "torch, built for CUDA 12.6, sees no GPU"),
        (fake_torch("12.6", True, "no kernel image is available"), None, "FAIL", "no kernel image is available"),
    ],
)
def test_unusable_gpus_are_reported(monkeypatch, torch, driver, status, detail):
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr("shutil.which", lambda name: driver)
    finding = diagnose("GPU", environment.gpus, "fix")
    assert finding.status == status
    assert detail in finding.detail


def test_an_old_torch_and_too_many_threads_are_reported(monkeypatch):
    torch = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(Trouble, match="torch uses 10000 on .* cores") as caught:
        environment.thread_count()
    assert caught.value.fix.startswith("export OMP_NUM_THREADS=")
    torch.__version__ = "2.5.1+cu121"
    with pytest.raises(Trouble, match=r"2\.5\.1\+cu121; fairseq-capsule requires >=2\.6"):
        environment.torch_build()


@pytest.mark.parametrize("value, status", [("1", "warn"), ("0", "ok")])
def test_unsafe_loading_of_checkpoints_is_reported(monkeypatch, value, status):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", value)
    assert diagnose("checkpoints", environment.weights_only, "").status == status
