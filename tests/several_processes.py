"""Trainings of fairseq in several processes that are forks: their corpus, their options, their group."""

import copy
import logging
import random

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model
from fairseq_cli import train
from torch.nn.parallel import DistributedDataParallel

from fairseq_capsule.testing.resuming import options_of_losses, options_of_training
from tests import hydra_store  # noqa: F401  faster compositions
from tests.processes import run_forked

TRAINER = train.Trainer


def write_corpus(folder):
    """Write a binarised corpus whose 19 or 37 batches are no multiple of two, four or eight."""
    rng = random.Random(1)
    for split, number in (("train", 37), ("valid", 5)):
        lines = [" ".join(rng.choices("abcdefghijkl", k=rng.randint(2, 7))) for _ in range(number)]
        (folder / f"{split}.en").write_text("\n".join(lines) + "\n")
        (folder / f"{split}.de").write_text("\n".join(line[::-1] for line in lines) + "\n")
    prefixes = [word for split in ("train", "valid") for word in (f"--{split}pref", folder / split)]
    words = [*prefixes, *"-s en -t de --joined-dictionary --destdir".split(), folder / "bin"]
    finished = run_forked("fairseq_cli.preprocess", "cli_main", words, folder)
    assert finished.returncode == 0, finished.stderr
    return folder / "bin"


def configuration(data, batch, arch, changed=(), words=()):
    """Return the options of a training."""
    given = [data, *f"--optimizer adam --lr 0.01 --adam-eps 0.001 --batch-size {batch}".split()]
    given += [*options_of_training(arch, dict(changed)), *words]
    given += [] if "--criterion" in words else options_of_losses(arch, dict(changed))
    parsed = options.parse_args_and_arch(options.get_training_parser(), [str(word) for word in given])
    return convert_namespace_to_omegaconf(parsed)


def without_devices(module, device_ids, output_device, **others):
    """torch's wrapper. fairseq passes the number of a GPU, which it refuses for a module on the CPU."""
    return DistributedDataParallel(module, **others)


def train_in_group(config, meeting, rank, world):
    """Train in a process of a group that meets in a file. Return fairseq's trainer."""
    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    distributed_fairseq_model.DistributedDataParallel = without_devices
    config = copy.deepcopy(config)
    group = config.distributed_training
    group.distributed_world_size, group.distributed_rank, group.distributed_no_spawn = world, rank, True
    group.distributed_backend = "gloo"
    group.distributed_init_method = f"file://{meeting}" if world > 1 else None
    trainers = []

    def keep(*arguments):
        trainers.append(TRAINER(*arguments))
        return trainers[0]

    train.Trainer = keep
    distributed_utils.call_main(config, train.main)
    return trainers[0]
