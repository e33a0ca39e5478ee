"""Reading fairseq's log of a training."""

import json

from fairseq_capsule_lab.runs.training_log import read_training_log, shared_measures
from tests.pages.report.runs import training_log, write


def test_curves_are_read(tmp_path):
    write(tmp_path / "train.log", training_log(0.1, validations=3))
    assert read_training_log(tmp_path / "train.log").validation == {
        "loss": {50: 8.0, 100: 5.5, 150: 4.667},
        "nll_loss": {50: 7.0, 100: 4.5, 150: 3.667},
    }


def test_logs_of_fairseq_train_and_json_logs_are_read(tmp_path):
    start = "2026-11-22 18:00:00 | INFO |"
    statistics = {
        "epoch": 1,
        "valid_loss": "4.5",
        "valid_nll_loss": "nan",
        "valid_num_updates": "20",
        "valid_past": "0.2",
    }
    lines = [
        f"{start} valid | epoch 001 | valid on 'valid' subset | loss 5.5 | ppl 45.25 | num_updates 10",
        f"{start} valid | {json.dumps(statistics)}",
        f"{start} train | epoch 001 | loss 6 | wps 0 | num_updates 10",
    ]
    write(tmp_path / "log", lines)
    log = read_training_log(tmp_path / "log")
    assert log.validation == {"loss": {10: 5.5, 20: 4.5}, "past": {20: 0.2}}
    assert shared_measures({"a": log, "b": read_training_log(tmp_path / "no")}) == ("loss", "past")


def test_after_a_restart_the_later_value_is_used(tmp_path):
    values = [(5, 1), (4, 2), (3, 2)]
    lines = [f"[x][valid][INFO] - epoch 001 | loss {loss} | num_updates {update}" for loss, update in values]
    write(tmp_path / "log", lines)
    assert read_training_log(tmp_path / "log").validation == {"loss": {1: 5.0, 2: 3.0}}
