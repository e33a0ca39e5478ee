"""The tests of the library pass in a process that cannot import fairseq."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.libraries import library

library("transformers")
ROOT = Path(__file__).parents[2]
TESTS = ["tests/losses", "tests/modules"]
TESTS += [
    f"tests/huggingface/test_{name}.py" for name in ("training", "tokenization", "conventions", "export", "pretrained")
]


@pytest.mark.slow
def test_the_tests_of_the_library_pass():
    options = ["--noconftest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-profile=ci"]
    options += ["-o", "pythonpath="]  # benchmarks need fairseq
    code = f"import sys, pytest; sys.modules['fairseq'] = None; sys.exit(pytest.main({[*options, *TESTS]}))"
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout
