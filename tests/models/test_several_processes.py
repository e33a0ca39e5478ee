"""Trainings of fairseq in several processes with torch's DistributedDataParallel, as on GPUs, but on the CPU.

The same batches give the parameters of one process that accumulates them. Dropout is 0: fairseq draws the same masks in
each process.
"""

import pytest
import torch

from tests.processes import start_fork
from tests.several_processes import configuration, train_in_group, write_corpus
from tests.zoo import SYSTEMS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:hydra")
# Each training: the architecture, its options, and further words of the command line.
CASES = {
    **{arch: (arch, {}, ()) for arch in SYSTEMS},
    "heads without a loss": ("gdr_transformer_tiny", {}, ("--bow-weight", 0, "--bca-weight", 0)),
    "all mechanisms": (
        "capsule_transformer_tiny",
        {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"},
        (),
    ),
    "a criterion alone": ("gret_transformer_tiny", {}, ("--criterion", "bag_of_words_probe")),
}
FURTHER = {
    "logits kept": ("gdr_transformer_tiny", {}, ("--output-logits", "kept")),
    "one head without a loss": ("gdr_lstm", {}, ("--bca-weight", 0)),
    "fairseq's criterion": ("gdr_transformer_tiny", {}, ("--criterion", "cross_entropy", "--sentence-avg")),
    "statistics": ("capsule_transformer_tiny", {}, ("--log-routing", "--log-routing-interval", 2)),
    "checkpointed activations": ("capsule_transformer_tiny", {"checkpoint_activations": True}, ()),
    "shared embeddings": ("gret_transformer_tiny", {"share_all_embeddings": True}, ()),
}


def train_all(configurations, folder, rank, world, accumulation):
    """Train each model for the five updates of an epoch, and save its parameters.

    Several processes train three updates, and the others from the checkpoint of the first process.
    """
    for name, config in configurations.items():
        config.checkpoint.save_dir = str(folder / name)
        config.optimization.max_epoch = 1
        config.optimization.update_freq = [accumulation]
        for updates in (3, 5) if world > 1 else (5,):
            config.optimization.max_update = updates
            trainer = train_in_group(config, folder / "meeting", rank, world)
        assert trainer.get_num_updates() == 5
        parts = {**trainer.get_model().state_dict(), **trainer.get_criterion().state_dict(prefix="criterion.")}
        torch.save(parts, folder / f"{name} {rank}.pt")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("data"))


def trained(cases, data, folder, world, accumulation, batch):
    """Train the cases in `world` processes, and at the same time in one with as much accumulation.

    Returns for each case the parameters of each process; those of the one process come first.
    """
    configurations = {name: configuration(data, batch, *case) for name, case in cases.items()}
    places = {1: folder / "one", world: folder / "several"}
    processes = []
    for number, place in places.items():
        place.mkdir()
        times = accumulation * world // number
        processes += [start_fork(train_all, configurations, place, rank, number, times) for rank in range(number)]
    for process in processes:
        process.join()
    assert not any(process.exitcode for process in processes)
    return {name: [torch.load(places[n] / f"{name} {rank}.pt") for n in places for rank in range(n)] for name in cases}


def assert_same(one, *several):
    for parameters in several:
        assert parameters.keys() == one.keys()
        for name, value in parameters.items():
            assert torch.equal(value, several[0][name]), name
            torch.testing.assert_close(value, one[name], rtol=0, atol=1e-6, msg=lambda text: f"{name}: {text}")


@pytest.fixture(scope="module")
def two_processes(data, tmp_path_factory):
    return trained(CASES, data, tmp_path_factory.mktemp("two"), 2, 2, 2)


@pytest.mark.parametrize("case", CASES)
def test_two_processes_equal_one_with_twice_the_accumulation(two_processes, case):
    assert_same(*two_processes[case])


@pytest.mark.slow
@pytest.mark.parametrize("world, accumulation, batch", [(4, 1, 2), (8, 1, 1)])
def test_more_processes_equal_one_with_more_accumulation(data, tmp_path, world, accumulation, batch):
    """In the last update some processes have no batch at all."""
    for parameters in trained(CASES | FURTHER, data, tmp_path, world, accumulation, batch).values():
        assert_same(*parameters)


@pytest.mark.slow
def test_compiled_routing_trains_in_two_processes(data, tmp_path):
    case = ("gdr_transformer_tiny", {"compile_routing": True}, ())
    for parameters in trained({"compiled": case}, data, tmp_path, 2, 2, 2).values():
        assert_same(*parameters)
