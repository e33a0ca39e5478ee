"""Reading fairseq's log of a training."""

import json

from fairseq_capsule_lab.runs.training_log import (
    read_training_log,
    shared_measures,
)
from tests.pages.report.runs import training_log, write


def test_curves_are_read(tmp_path):
    write(tmp_path / "train.log", training_log(0.1, validations=3))
    log = read_training_log(tmp_path / "train.log")
    assert log.validation == {
        "loss": {50: 8.0, 100: 5.5, 150: 4.667},
        "nll_loss": {50: 7.0, 100: 4.5, 150: 3.667},
    }


def test_logs_of_fairseq_train_and_json_logs_are_read(tmp_path):
    start = "2026-11-22 18:00:00 | INFO |"
    statistics = {
        "epoch": 1,
        "valid_loss": "4.5",
        "valid_nll_loss": "4.1",
        "valid_num_updates": "20",
        "valid_past": "0.25",
    }
    write(
        tmp_path / "log",
        [
            f"{start} valid | epoch 001 | valid on 'valid' subset | loss 5.5 | ppl 45.25 | num_updates 10",
            f"{start} valid | {json.dumps(statistics)}",
            f"{start} train | epoch 001 | loss 6 | wps 0 | num_updates 10",
        ],
    )
    log = read_training_log(tmp_path / "log")
    assert log.validation == {"loss": {10: 5.5, 20: 4.5}, "nll_loss": {20: 4.1}, "past": {20: 0.25}}
    assert shared_measures({"a": log, "b": read_training_log(tmp_path / "no")}) == ("loss", "nll_loss", "past")


def test_after_a_restart_the_later_value_is_used(tmp_path):
    lines = [
        f"[x][valid][INFO] - epoch 001 | loss {loss} | num_updates {update}"
        for loss, update in [(5, 1), (4, 2), (3, 2)]
    ]
    write(tmp_path / "log", lines)
    assert read_training_log(tmp_path / "log").validation == {"loss": {1: 5.0, 2: 3.0}}


def test_names_and_figures_of_both_formats_are_checked(tmp_path):
    names = [r"$\frac", "\ud800", "a b", "x" * 61, "é", "loss"]
    values = ["1" * 401, "1e308", "nan", "x", "-1.5e2"]
    text = " | ".join(f"{name} 2" for name in names) + " | " + " | ".join(f"m{i} {v}" for i, v in enumerate(values))
    statistics = {**dict.fromkeys(names, 2), **{f"m{i}": value for i, value in enumerate(values)}, "n": int(values[0])}
    # fairseq's texts, numbers, and what is neither
    statistics = json.dumps({**statistics, "m5": [1], "m6": None, "num_updates": 7})
    for number, line in enumerate((f"{text} | num_updates 7", statistics)):
        path = tmp_path / str(number)
        path.write_text(f"[x][valid][INFO] - {line}\n[x][y][INFO] - num. shared model params: ,, \n", errors="replace")
        assert read_training_log(path).validation == {"loss": {7: 2.0}, "m4": {7: -150.0}}
