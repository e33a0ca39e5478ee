"""A signal to one process of a training: all save after the same update, end with the status 75, and go on later."""

import os
import signal

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_capsule.tasks import stopping
from tests.integration.commands import wait_for
from tests.processes import start_fork
from tests.several_processes import configuration, train_in_group, write_corpus

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:hydra")
FURTHER = 3  # updates after the stop


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    data = write_corpus(tmp_path_factory.mktemp("data"))
    return configuration(data, 2, "gdr_transformer_tiny", words=("--patience", 3, "--keep-last-epochs", 1))


def start(config, folder, world, updates=0):
    config.checkpoint.save_dir = str(folder)
    config.optimization.max_update = updates
    (folder / "meeting").unlink(missing_ok=True)
    return [start_fork(train_in_group, config, folder / "meeting", rank, world) for rank in range(world)]


def statuses(processes):
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def saved(folder):
    return checkpoint_utils.load_checkpoint_to_cpu(str(folder / "checkpoint_last.pt"))


@pytest.mark.parametrize("world, number", [(2, signal.SIGUSR1), (1, signal.SIGTERM)])
def test_a_signal_saves_after_the_same_update_and_the_training_goes_on(config, tmp_path, world, number):
    (tmp_path / "stopped").mkdir(), (tmp_path / "straight").mkdir()
    processes = start(config, tmp_path / "stopped", world)
    wait_for(tmp_path / "stopped/checkpoint_last.pt")
    os.kill(processes[-1].pid, number)
    assert statuses(processes) == [stopping.STATUS] * world
    updates = saved(tmp_path / "stopped")["optimizer_history"][-1]["num_updates"]
    for place in ("stopped", "straight"):
        assert statuses(start(config, tmp_path / place, world, updates + FURTHER)) == [0] * world
    stopped, straight = saved(tmp_path / "stopped"), saved(tmp_path / "straight")
    for name, value in straight["model"].items():
        assert torch.equal(value, stopped["model"][name]), name
    for kept in ("best", "val_loss", "CapsuleTranslationTask"):
        assert stopped["extra_state"].get(kept) == straight["extra_state"].get(kept)


def test_a_second_sigterm_ends_a_process_at_once():
    process = start_fork(signalled_twice)
    process.join()
    assert process.exitcode == -signal.SIGTERM


def signalled_twice():
    stopping.install()
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGTERM)
    os._exit(0)
