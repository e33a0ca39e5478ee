"""The versions of Python that pyproject.toml lists, by the fairseq that its extra installs on x86-64 Linux."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text]


def _with(name):
    forks = [fork for fork in map(Requirement, PROJECT["optional-dependencies"]["fairseq"]) if fork.name == name]
    machine = {"sys_platform": "linux", "platform_machine": "x86_64", "implementation_name": "cpython"}
    return [python for python in PYTHONS if forks[0].marker.evaluate({**machine, "python_version": python})]


WHEEL, COMPILED = _with("ve-fairseq"), _with("fairseq-fixed")
FAIRSEQ = WHEEL + COMPILED
WITHOUT = [python for python in PYTHONS if python not in FAIRSEQ]
