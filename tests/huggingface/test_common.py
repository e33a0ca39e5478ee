"""transformers' own common tests pass. They come from its source distribution, which pip fetches."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.archives import unpack
from tests.libraries import library

library("transformers")
library("parameterized")
ROOT = Path(__file__).parents[2]
# Modules that the source distribution lacks, with what the common tests import from them.
STAND_INS = {
    "exporters/test_export.py": "class ExportTesterMixin: ...",
    "generation/test_utils.py": "class GenerationTesterMixin: ...",
    "utils/test_configuration_utils.py": "config_common_kwargs = {}",
}


@pytest.fixture(scope="module")
def common_tests(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transformers")
    name = f"transformers-{version('transformers')}"
    pinned = name.replace("-", "==")
    options = ["--quiet", "--no-deps", "--no-binary", "transformers"]
    fetch = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), pinned]
    subprocess.run(fetch, check=True)
    unpack(folder / f"{name}.tar.gz", folder)
    tests = (folder / name / "tests").rename(folder / "transformers_tests")
    for file, text in STAND_INS.items():
        (tests / file).parent.mkdir()
        (tests / file).write_text(text, encoding="utf-8")
    for part in (tests, *(path for path in tests.iterdir() if path.is_dir())):
        (part / "__init__.py").touch()
    (tests / "fixtures").mkdir()
    (tests / "fixtures/sample_text.txt").write_text("A text.", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_the_common_tests_pass(common_tests):
    path = os.pathsep.join([str(common_tests), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    # Its marks are not ours, and it expects warnings.
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "filterwarnings="]
    command = [sys.executable, "-m", "pytest", *options, "tests/huggingface/common.py"]
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-20_000:]
