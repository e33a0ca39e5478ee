"""What an import does, in a process of its own."""

import itertools
import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.processes import run_code
from tests.pythons import PROJECT

REPOSITORY = Path(__file__).parent.parent


def run(code):
    command = [sys.executable, "-W", "ignore", "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


def test_the_packages_import_no_torch():
    names = ["capsule_routing", "capsule_routing.errors", "capsule_routing.text.folders", "fairseq_capsule_lab"]
    names += ["fairseq_capsule_lab.cli", "fairseq_capsule_lab.runs", "experiments.reproduce"]
    assert run(f"import {', '.join(names)}, sys; print(*{{'torch', 'fairseq'}} & set(sys.modules))") == []


@pytest.mark.parametrize("name", ["functions", "losses", "modules", "modules.compile_routing", "dynamic_routing"])
def test_a_part_of_the_library_is_there_at_the_first_access(name):
    assert run(f"import capsule_routing; capsule_routing.{name}") == []


def test_the_library_imports_only_torch():
    """In a process in which nothing else can be imported that this package requires, and no extra of it."""
    required = [*PROJECT["dependencies"], *itertools.chain(*PROJECT["optional-dependencies"].values())]
    names = {canonicalize_name(Requirement(text).name) for text in required}
    names -= {"torch", "fairseq-capsule", "setuptools"}
    installed = packages_distributions().items()
    missing = {name for name, packages in installed if names & set(map(canonicalize_name, packages))}
    assert {"numpy", "hydra", "yaml", "fairseq", "transformers"} <= missing
    code = f"""
import sys
sys.modules |= dict.fromkeys({missing})
import capsule_routing.functions, capsule_routing.losses, capsule_routing.modules
print(*sorted(name for name in ("torch", "numpy", "hydra", "fairseq") if sys.modules.get(name)))
"""
    assert run(code) == ["torch"]


def test_the_library_patches_nothing():
    """In a fork of a process that has imported fairseq."""
    code = """
import fairseq.checkpoint_utils as utils, fairseq.models, sys
before = utils.load_checkpoint_to_cpu, utils.torch, len(fairseq.models.MODEL_REGISTRY)
import capsule_routing.functions, capsule_routing.losses, capsule_routing.modules
evals = [name for name, module in sys.modules.items() if name.startswith("fairseq.") and "eval" in vars(module)]
print(before == (utils.load_checkpoint_to_cpu, utils.torch, len(fairseq.models.MODEL_REGISTRY)), *evals)
"""
    assert run_code(code, []).stdout == "True\n"


REGISTERED = """
from fairseq import criterions, models, tasks
print("gdr_lstm" in models.MODEL_REGISTRY, "capsule_translation" in tasks.TASK_REGISTRY)
print("bag_of_words_probe" in criterions.CRITERION_REGISTRY)
"""
USER_DIR = """
import sys
from argparse import Namespace
from fairseq import utils
utils.import_user_module(Namespace(user_dir=sys.argv[1]))
"""
SPAWNED = """
import multiprocessing, sys
from argparse import Namespace
from fairseq import utils
from fairseq_capsule.criterions.bag_of_words_probe import BagOfWordsProbeConfig
options = Namespace(user_dir=sys.argv[1], kind=BagOfWordsProbeConfig)  # imported to be read
process = multiprocessing.get_context("spawn").Process(target=utils.import_user_module, args=(options,))
process.start()
process.join()
assert process.exitcode == 0
"""
ORDERS = {
    "--user-dir": USER_DIR,
    "a part, then --user-dir": f"import fairseq_capsule.options{USER_DIR}",
    "spawned": SPAWNED,
}


def test_an_import_alone_registers_everything():
    """In a fork of a process that has imported fairseq."""
    assert run_code(f"import fairseq_capsule{REGISTERED}", []).stdout.split() == ["True"] * 3


@pytest.mark.parametrize(
    "order, installed",
    [
        ("--user-dir", True),
        ("a part, then --user-dir", True),
        pytest.param("spawned", False, marks=pytest.mark.slow),
    ],
)
def test_an_import_registers_everything_in_every_order(tmp_path, order, installed):
    """A wheel is a folder beside fairseq's. Then `--user-dir fairseq_capsule` works from any folder."""
    place = REPOSITORY
    if installed:
        place = tmp_path / "site-packages"
        for package in ("fairseq", "fairseq_capsule"):
            (place / package).mkdir(parents=True)  # no link: fairseq looks for `fairseq/../fairseq_capsule`
            for path in Path(find_spec(package).origin).parent.iterdir():
                (place / package / path.name).symlink_to(path)
    program = [sys.executable, "-W", "ignore", "-c", ORDERS[order] + REGISTERED]
    finished = subprocess.run(
        [*program, "fairseq_capsule" if installed else str(REPOSITORY / "fairseq_capsule")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
    )
    assert finished.stdout.split() == ["True"] * 3, finished.stderr
