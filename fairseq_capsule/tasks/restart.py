"""What a restart remembers, where fairseq forgets it, and checks of a training before it starts.

fairseq counts the validations without progress from the last start, restores the place in an epoch as if the number of
processes had not changed, and gives all jobs of a Hydra sweep one folder. The task saves the first with its checkpoint
hooks.
"""

import ast
import hashlib
import logging
import os
import sys
from typing import Any, Callable, Dict, List, Mapping, Sequence

from fairseq import checkpoint_utils
from fairseq.data.iterators import EpochBatchIterator
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from torch import nn

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.restoring import restored_checkpoint
from fairseq_capsule.criterions.routing_losses import NAME as ROUTING_LOSSES
from fairseq_capsule.tasks.stopping import training_module

logger = logging.getLogger(__name__)

PLATEAU = "reduce_lr_on_plateau"  # the only schedule with a state of its own: the others follow the updates


def options_of_training(cfg: Any) -> Any:
    """Return the whole config of a training, of which a task's config is a part; None for a config without one."""
    root = cfg._get_root() if isinstance(cfg, DictConfig) else None
    return root if root is not None and "checkpoint" in root else None


def begin_training(options: DictConfig) -> None:
    """Check the options that fairseq would ignore, and begin with nothing of an earlier training in this process.

    A job of a Hydra sweep gets a folder of its own. What would give another training than the options say is a
    UserError.
    """
    _refuse_several_trainings(options)
    checkpoint = options.checkpoint
    if checkpoint.reset_lr_scheduler and not checkpoint.reset_optimizer and options.lr_scheduler._name != PLATEAU:
        problem = "it resets nothing: the learning rate follows the number of updates, which goes on"
        raise UserError(f"--reset-lr-scheduler: {problem}; give --reset-optimizer too, which starts at update 0")
    if checkpoint.best_checkpoint_metric == "loss" and getattr(options.criterion, "_name", "") == ROUTING_LOSSES:
        advice = "give --best-checkpoint-metric nll_loss"
        logger.warning(
            f"the best checkpoint goes by the sum with the losses of mechanisms, which no baseline has; {advice}"
        )
    _separate_jobs(checkpoint)
    for function in (checkpoint_utils.save_checkpoint, _should_stop_early()):
        vars(function).clear()


def choose_wrapper(model: nn.Module, options: Any) -> None:
    """Let fairseq average the gradients of several processes where a criterion alone is trained.

    torch's DistributedDataParallel refuses a model without a parameter to train.
    """
    if options is not None and not any(parameter.requires_grad for parameter in model.parameters()):
        options.distributed_training.ddp_backend = "legacy_ddp"


def state(options: DictConfig) -> Dict[str, Any]:
    """Return what belongs to a checkpoint beside fairseq's own state."""
    counted = {name: float(value) for name, value in vars(_should_stop_early()).items() if name in ("best", "num_runs")}
    return {"patience": counted, "lr": [float(rate) for rate in options.optimization.lr]}


def restore(saved: Mapping[str, Any], options: DictConfig) -> None:
    """Go on counting for `--patience` where the training stood. One that was ended by it trains no further.

    A UserError says that a changed `--lr` has no effect.
    """
    overridden = "lr" in ast.literal_eval(options.checkpoint.optimizer_overrides)
    rates = [float(rate) for rate in options.optimization.lr]
    checkpoint = options.checkpoint
    kept = not (checkpoint.reset_optimizer or overridden)
    if options.lr_scheduler._name == PLATEAU and saved["lr"] != rates and kept:
        advice = f"give --optimizer-overrides \"{{'lr': {rates[0]:g}}}\""
        raise UserError(f"--lr {rates[0]:g}: {PLATEAU} goes on with the rate of the checkpoint; {advice}")
    counted, patience = saved["patience"], checkpoint.patience
    restored = restored_checkpoint(checkpoint)
    goes_on = restored is not None and not restored.option
    if not goes_on or checkpoint.reset_meters or checkpoint.reset_optimizer or patience <= 0 or not counted:
        return
    stop: Any = _should_stop_early()
    stop.best, stop.num_runs = counted["best"], int(counted["num_runs"])
    if stop.num_runs >= patience:
        logger.info(f"ended before: no progress in the last {patience} validations (--patience)")
        options.optimization.max_epoch = -1  # 0 is no limit


class Batches(EpochBatchIterator):
    """fairseq's batches of an epoch, which several processes share.

    A training with another number of processes resumes at the right place. And every batch counts: if the last batch
    that a process accumulates in an update is empty, fairseq divides by the words of the other processes alone.
    """

    accumulation: Sequence[int] = (1,)  # batches of an update, by epoch; the last number holds for all further epochs
    offset = 0  # batches of the epoch before the start

    def _get_iterator_for_epoch(self, epoch: int, shuffle: bool, *args: Any, offset: int = 0, **options: Any) -> Any:
        self.offset = offset
        return super()._get_iterator_for_epoch(epoch, shuffle, *args, offset=offset, **options)

    def ordered_batches(self, epoch: int, *args: Any) -> List[List[int]]:
        """Return the batches of this process, without an empty one that is not alone in its update."""
        batches: List[List[int]] = super().ordered_batches(epoch, *args)
        times = self.accumulation[min(epoch, len(self.accumulation)) - 1]
        if batches and len(batches[-1]) == 0 and (len(batches) - 1 - self.offset) % times:
            batches.pop()
        return batches

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), "processes": self.num_shards}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        # Each process takes every N-th batch of the same list.
        place, before = state_dict.get("iterations_in_epoch", 0), state_dict.get("processes", self.num_shards)
        scaled, repeated = divmod(place * before, self.num_shards)
        if place and before != self.num_shards:
            logger.info(
                f"processes: {self.num_shards}, before {before}; epoch {state_dict['epoch']} goes on after "
                f"{scaled} batches of each process, and {repeated} batches are trained on again"
            )
        super().load_state_dict({**state_dict, "iterations_in_epoch": scaled})


def _should_stop_early() -> Callable[..., bool]:
    """Return fairseq's function, whose attributes count."""
    function: Callable[..., bool] = training_module().should_stop_early
    return function


def _refuse_several_trainings(options: DictConfig) -> None:
    """Refuse processes of torchrun or Slurm that would each train a model of their own, in the same folder."""
    started, world = os.environ.get("WORLD_SIZE", "1"), options.distributed_training.distributed_world_size
    if started.isdecimal() and int(started) > world:
        problem = f"{started} processes were started, each of which would train a model of its own"
        raise UserError(f"WORLD_SIZE {started}: {problem}; give --distributed-world-size {started}, or use train.sh")


def _separate_jobs(checkpoint: DictConfig) -> None:
    """Give a job of a Hydra sweep a folder in `checkpoint.save_dir`, named by its number and its overrides."""
    if not HydraConfig.initialized():  # in the processes that fairseq starts for several GPUs
        if "hydra" in os.path.basename(sys.argv[0]) and {"-m", "--multirun"} & set(sys.argv):
            problem = "its processes do not know their job"
            raise UserError(f"a Hydra sweep on several GPUs: {problem}; start each training by train.sh")
        return
    job = HydraConfig.get()
    if job.mode == RunMode.MULTIRUN:
        overrides = " ".join(job.overrides.task)
        name = f"{job.job.num}-{hashlib.sha256(overrides.encode()).hexdigest()[:8]}"
        checkpoint.save_dir = os.path.join(checkpoint.save_dir, name)
        logger.info(f"a job of a sweep, {overrides}: its folder is {checkpoint.save_dir}")
