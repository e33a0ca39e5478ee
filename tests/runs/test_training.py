"""How a start of train.sh ends: what its error says, read from fairseq's log."""

import os
from types import SimpleNamespace

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.runs.train import Training, as_settings
from fairseq_capsule_lab.stages import Folder

LOADED = "[fairseq.trainer][INFO] - Loaded checkpoint old/checkpoint_last.pt (epoch 13 @ 1500 updates)"


@pytest.fixture
def training(tmp_path):
    plan = SimpleNamespace(machines=SimpleNamespace(node=0, gpus=()), max_update=0, max_epoch=0, warmup=0)
    made = Training("train.sh", Folder(str(tmp_path), "train.sh"), plan)
    made.run.note_start({})
    return made


def test_a_checkpoint_that_has_all_its_epochs_is_named(training):
    training.log.write_text(f"{LOADED}\n[fairseq_cli.train][INFO] - done training in 0.0 seconds\n")
    wanted = (
        "nothing to train: old/checkpoint_last.pt has 12 epochs and 1500 updates .*; give optimization.max_epoch or"
    )
    with pytest.raises(UserError, match=wanted):
        training.end(0)


@pytest.mark.parametrize("stored", [True, False])
def test_averages_that_nothing_reads_are_named(training, capsys, stored):
    training.run.manifest_file.unlink()
    training.plan.settings = Settings({"ema": {"store_ema": stored}})
    vars(training.plan).update(where="1 process", batch="9 tokens", data="data", seed=1)
    assert training.begin("train.sh")
    line = "ema.store_ema: nothing reads these averages; 'fairseq-capsule average' averages checkpoints"
    assert (line in capsys.readouterr().out.splitlines()) == stored


def test_an_error_after_a_checkpoint_was_loaded_is_the_reason(training):
    training.log.write_text(f"{LOADED}\nValueError: skip it with --skip-invalid-size-inputs-valid-test\n")
    with pytest.raises(UserError, match="ValueError: skip it with dataset.skip_invalid_size_inputs_valid_test=true "):
        training.end(1)


RESET = "RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:537] Read error [10.0.0.2]:20166: Connection reset by peer."
ROOT_CAUSE = "  exitcode  : -9 (pid: 12)\n  traceback : Signal 9 (SIGKILL) received by PID 12\n"


@pytest.mark.parametrize(
    "lines, reason",
    [
        (RESET, "the connection to another process was lost, which failed or was killed"),
        (f"{RESET}\n{ROOT_CAUSE}", "killed by signal 9, perhaps because memory ran out"),
        (f"ValueError: out of luck\n{RESET}", "ValueError: out of luck"),
    ],
)
def test_what_ended_several_processes_is_named(training, lines, reason):
    training.log.write_text(f"{lines}\n{'=' * 60}\n")  # the last line of torchrun
    with pytest.raises(UserError, match=f"^{reason} \\(full log: "):
        training.end(1)


def test_a_signal_to_another_node_ends_this_one_with_the_same_status(training, capsys):
    training.log.write_text("[fairseq_capsule.tasks.stopping][WARNING] - stopped by a signal after update 12; ...\n")
    assert training.end(1) == os.EX_TEMPFAIL
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("train.sh: interrupted (full log: ")
    assert training.run.manifest()["starts"][-1]["end"]["how"] == "interrupted"


@pytest.mark.parametrize(
    ("advice", "wanted"),
    [
        ("lower --max-tokens or --lr", "lower dataset.max_tokens or optimization.lr"),
        ("--no-such-option of a-b --c", "--no-such-option of a-b --c"),
        ("give --fp16; ", "give common.fp16=true; "),
    ],
)
def test_advice_of_fairseq_is_given_as_settings(advice, wanted):
    assert as_settings(advice) == wanted
