"""Reading the log of a training."""

from fairseq_capsule_lab.runs.training_log import read_curves
from tests.pages.report.runs import training_log, write


def test_curves_are_read(tmp_path):
    write(
        tmp_path / "train.log", [*training_log(0.1, validations=3), "[x][valid][INFO] - nll_loss nan | num_updates 9"]
    )
    assert read_curves(tmp_path / "train.log") == {
        "loss": {50: 8.0, 100: 5.5, 150: 4.667},
        "nll_loss": {50: 7.0, 100: 4.5, 150: 3.667},
    }
    assert read_curves(tmp_path / "no") == {}


def test_after_a_restart_the_later_value_is_used(tmp_path):
    values = [(5, 1), (4, 2), (3, 2)]
    lines = [f"[x][valid][INFO] - epoch 001 | loss {loss} | num_updates {update}" for loss, update in values]
    write(tmp_path / "log", lines)
    assert read_curves(tmp_path / "log") == {"loss": {1: 5.0, 2: 3.0}}
