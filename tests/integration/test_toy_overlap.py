"""On the embedded corpus, PAST and FUTURE learn to predict their bags of words."""

import os
import re
import subprocess

import pytest

from tests.integration.commands import REPOSITORY, run
from tests.integration.warm_commands import warm_path


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    out = tmp_path_factory.mktemp("toy") / "data"
    environment = {**os.environ, "PATH": warm_path()}
    subprocess.run([REPOSITORY / "scripts/prepare-toy.sh", out], check=True, stdout=subprocess.DEVNULL, env=environment)
    return out / "bin"


def overlaps(toy, save_dir, *overrides):
    config = ["--config-dir", REPOSITORY / "configs/toy", "--config-name", "gdr_transformer"]
    output = run(
        "hydra_train",
        *config,
        *(
            f"task.data={toy}",
            f"checkpoint.save_dir={save_dir}",
            "common.cpu=true",
            "task.eval_overlap=true",
            *overrides,
        ),
        user_dir=None,
    )
    return [float(re.findall(rf"\| overlap_{content} ([\d.]+)", output)[-1]) for content in ("past", "future")]


@pytest.mark.slow
def test_a_trained_model_has_a_high_overlap_and_an_untrained_one_a_low(toy, tmp_path):
    """The paper reports 0.72 and 0.70. An untrained model is near 0, so the small vocabulary is not enough to pass."""
    untrained = overlaps(toy, tmp_path / "untrained", "optimization.max_update=1", "optimization.lr=[0.0]")
    trained = overlaps(toy, tmp_path / "trained")
    assert max(untrained) < 0.2
    assert min(trained) > 0.6
