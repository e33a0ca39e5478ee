"""A resumed training is as if it had not been interrupted; options that fairseq ignores; jobs of a Hydra sweep."""

import copy
import functools
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import FairseqConfig
from fairseq_cli.train import should_stop_early
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule.tasks import restart
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig, CapsuleTranslationTask
from tests.zoo import LENGTHS, build, make_batch, make_sentences, make_task

LOSSES = [5, 4, 4, 4.5, 3, 3.5, 3, 3.2, 6, 7, 1]  # a tie is no progress


@pytest.fixture(autouse=True)
def no_state():
    yield
    HydraConfig.instance().cfg = None
    for function in (should_stop_early, checkpoint_utils.save_checkpoint):
        vars(function).clear()


@functools.cache
def defaults():
    whole = OmegaConf.structured(FairseqConfig())
    OmegaConf.set_struct(whole, False)
    return whole


def options(**groups):
    """The whole config of a training: fairseq's defaults but for `groups`."""
    whole = copy.deepcopy(defaults())
    whole.task, whole.lr_scheduler = OmegaConf.structured(CapsuleTranslationConfig()), {"_name": "inverse_sqrt"}
    whole.distributed_training.distributed_world_size = 1
    for group, values in groups.items():
        for name, value in values.items():
            whole[group][name] = value
    return whole


def task_of(whole, words=40):
    dictionary = make_task(words).src_dict
    return CapsuleTranslationTask(whole.task, dictionary, dictionary)


def batches_of(processes, number=12, seed=1):
    """fairseq's iterators of the processes of a training, as the task makes them: a sentence in each batch."""
    sentences = [torch.tensor([4 + index, 2]) for index in range(number)]
    task = task_of(options())
    pairs = LanguagePairDataset(sentences, [2] * number, task.src_dict, sentences, [2] * number, task.tgt_dict)
    further = {"max_sentences": 1, "seed": seed, "num_shards": processes, "disable_iterator_cache": True}
    return [task.get_batch_iterator(pairs, shard_id=shard, **further) for shard in range(processes)]


class Trainer:
    """What fairseq's functions for checkpoints need of its trainer."""

    data_parallel_rank, should_save_checkpoint_on_current_rank = 0, True

    def __init__(self, task, suffix=""):
        self.task, self.checkpoint_suffix = task, suffix

    def consolidate_optimizer(self):
        pass

    lr_step = get_num_updates = lambda self, *_: 1

    def save_checkpoint(self, file, extra_state):
        torch.save(extra_state, file)
        return file

    def load_checkpoint(self, file, *_, **__):
        return torch.load(file) if Path(file).exists() else None

    def get_train_iterator(self, epoch, **_):
        return batches_of(1)[0]


def epochs_of(folder, patience, starts, suffix=""):
    """Train on `LOSSES`, interrupted after the numbers of epochs in `starts`; return how many epochs there were."""
    done = 0
    for until in (*starts, len(LOSSES)):
        checkpoint = {"save_dir": str(folder), "patience": patience, "checkpoint_suffix": suffix}
        whole = options(checkpoint=checkpoint)
        task = task_of(whole)
        restart.begin_training(whole)
        trainer = Trainer(task, suffix)
        _, epoch = checkpoint_utils.load_checkpoint(whole.checkpoint, trainer)
        if whole.optimization.max_epoch == -1:
            return done
        while done < until:
            done += 1
            for _ in epoch.next_epoch_itr(shuffle=False):
                pass
            stopped = should_stop_early(whole, LOSSES[done - 1])
            checkpoint_utils.save_checkpoint(whole.checkpoint, trainer, epoch, LOSSES[done - 1])
            if stopped:
                break
    return done


@pytest.mark.parametrize("patience, suffix", [(1, ""), (2, ""), (3, ""), (4, ""), (3, "-a")])
def test_patience_counts_over_interruptions(tmp_path, patience, suffix):
    together = epochs_of(tmp_path / "together", patience, [], suffix)
    assert epochs_of(tmp_path / "apart", patience, range(1, len(LOSSES)), suffix) == together
    assert together == {1: 3, 2: 4, 3: 8, 4: 9}[patience]


def test_another_training_counts_from_its_start(tmp_path):
    epochs_of(tmp_path, 2, [])
    whole = options(checkpoint={"restore_file": str(tmp_path / "checkpoint_last.pt"), "patience": 2})
    restart.begin_training(whole)
    checkpoint_utils.load_checkpoint(whole.checkpoint, Trainer(task_of(whole)))
    assert whole.optimization.max_epoch == 0 and not vars(should_stop_early)


@pytest.mark.parametrize("before, now", [(2, 1), (1, 2), (2, 3), (3, 2), (4, 3), (2, 2)])
@pytest.mark.parametrize("done", [1, 2])
def test_an_epoch_goes_on_with_another_number_of_processes(before, now, done, caplog):
    def words(iterator, most=None):
        taken = []
        while iterator.has_next() and len(taken) != most:
            taken += next(iterator).get("id", torch.tensor([])).tolist()
        return taken

    seen, first = [], batches_of(before)
    for batches in first:
        seen += words(batches.next_epoch_itr(), done)
    again, rest = batches_of(now), []
    with caplog.at_level("INFO"):
        for batches in again:
            batches.load_state_dict(first[0].state_dict())
            rest += words(batches.next_epoch_itr())
    assert set(seen) | set(rest) == set(range(12))
    repeated = len(seen) + len(rest) - 12
    assert repeated == (before * done) % now
    line = f"processes: {now}, before {before}; epoch 1 goes on after {before * done // now} batches of each process"
    assert (f"{line}, and {repeated} batches are trained on again" in caplog.text) == (before != now)


def test_a_learning_rate_that_is_not_taken_is_refused():
    whole = options(checkpoint={"reset_lr_scheduler": True})
    with pytest.raises(UserError, match="--reset-lr-scheduler: it resets nothing: .* give --reset-optimizer too"):
        restart.begin_training(whole)
    saved = restart.state(options(optimization={"lr": [0.5]}))
    task_of(options(optimization={"lr": [0.1]})).set_checkpoint_dict(saved)  # this schedule computes the rate anew
    plateau = {"lr_scheduler": {"_name": "reduce_lr_on_plateau"}, "optimization": {"lr": [0.1]}}
    with pytest.raises(UserError, match="--lr 0.1: reduce_lr_on_plateau goes on with the rate of the checkpoint; give"):
        task_of(options(**plateau)).set_checkpoint_dict(saved)
    task_of(options(**plateau, checkpoint={"optimizer_overrides": "{'lr': 0.1}"})).set_checkpoint_dict(saved)


@pytest.mark.parametrize("metric, said", [("loss", True), ("nll_loss", False)])
def test_a_choice_by_the_sum_with_the_losses_of_mechanisms_is_said(metric, said, caplog):
    whole = options(checkpoint={"best_checkpoint_metric": metric})
    restart.begin_training(whole)  # another criterion
    assert not caplog.text
    whole.criterion = {"_name": "label_smoothed_cross_entropy_with_routing_losses"}
    restart.begin_training(whole)
    assert ("which no baseline has; give --best-checkpoint-metric nll_loss" in caplog.text) == said


def test_processes_that_would_train_a_model_each_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="WORLD_SIZE 2: 2 processes were started, each of which would train a model of"):
        restart.begin_training(options())
    restart.begin_training(options(distributed_training={"distributed_world_size": 2}))


def test_the_jobs_of_a_sweep_have_folders_of_their_own(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("model: {dropout: 0.1}\n", encoding="utf-8")
    folders = []
    for number, overrides in enumerate([["model.dropout=0.1"], ["model.dropout=0.5"], ["model.dropout=0.7"]]):
        number = min(number, 1)  # the last job is of another sweep
        with initialize_config_dir(str(tmp_path), version_base="1.1"):
            job = [f"hydra.job.num={number}", "hydra.job.id=x", "hydra.mode=MULTIRUN"]
            job.append(f"hydra.overrides.task={overrides}")
            HydraConfig.instance().set_config(compose("config", [*overrides, *job], return_hydra_config=True))
        whole = options(checkpoint={"save_dir": "runs/own"})
        should_stop_early.best = checkpoint_utils.save_checkpoint.best = 0  # of the job before, in the same process
        restart.begin_training(whole)
        assert not vars(should_stop_early) and not vars(checkpoint_utils.save_checkpoint)
        folders.append(whole.checkpoint.save_dir)
    assert len(set(folders)) == 3 and all(folder.startswith("runs/own/") for folder in folders)
    HydraConfig.instance().cfg = None
    monkeypatch.setattr("sys.argv", ["/bin/fairseq-hydra-train", "-m", "model.dropout=0.1,0.5"])
    with pytest.raises(UserError, match="a Hydra sweep on several GPUs: .*; start each training by train.sh"):
        restart.begin_training(options())


def test_no_ngram_is_repeated_without_the_extension():
    """A model of random parameters repeats itself; in fairseq's form the option changes nothing."""
    torch.manual_seed(1)
    model, task = build("gdr_transformer_base").eval(), task_of(options())

    def repeated(size, blocked):
        """Whether each translation has an n-gram of a size twice."""
        args = Namespace(beam=3, no_repeat_ngram_size=blocked, max_len_b=30, min_len=30)
        generator = task.build_generator([model], args)
        best = [found[0]["tokens"].tolist() for found in task.inference_step(generator, [model], batch)]
        grams = [[tuple(words[place : place + size]) for place in range(31 - size)] for words in best]
        return [len(found) > len(set(found)) for found in grams]

    batch = make_batch(make_sentences(LENGTHS))
    for size in (2, 3):
        assert all(repeated(size, blocked=0)) and not any(repeated(size, blocked=size))
    with pytest.raises(UserError, match="--no-repeat-ngram-size 1: fairseq blocks none; give at least 2"):
        task.build_generator([model], Namespace(beam=3, no_repeat_ngram_size=1))
