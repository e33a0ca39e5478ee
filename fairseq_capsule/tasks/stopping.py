"""A signal that ends a training after its next update, with a checkpoint. Clusters send one before they stop a job.

SIGUSR1 or SIGTERM to one of several processes is enough. fairseq sums the values to log over all processes after every
update, and one of these values says whether a process received a signal. So all learn of it after the same update,
save, and end with `STATUS`. fairseq has no hook where a task could save: `install` wraps the function that it calls
after every update.
"""

import functools
import logging
import os
import signal
import sys
import threading
from typing import Any, Callable, Dict, Iterable, Mapping

from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from torch import distributed

logger = logging.getLogger(__name__)

STATUS = os.EX_TEMPFAIL  # 75: the same command goes on
KEY = "stop_requested"  # in the values to log
SIGNALS = (signal.SIGUSR1, signal.SIGTERM)


class Stop:
    """Whether this process received a signal, `received`, and whether all processes know that one did, `agreed`."""

    def __init__(self) -> None:
        self.received = self.agreed = False

    def handle(self, number: int, _: Any) -> None:
        """Handle a signal. A second SIGTERM ends the process at once."""
        if self.received and number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.received = True

    def tell(self, output: Dict[str, Any]) -> None:
        """Add what this process knows to the values to log of a batch."""
        output[KEY] = int(self.received)

    def learn(self, outputs: Iterable[Mapping[str, Any]]) -> None:
        """Learn what the processes know from the values of an update."""
        self.agreed = self.agreed or any(output.get(KEY, 0) > 0 for output in outputs)


def install() -> Stop:
    """Handle the signals of this process, and save after an update in which one was received."""
    module = training_module()
    if not hasattr(module.validate_and_save, "__wrapped__"):
        module.validate_and_save = _then_stop(module.validate_and_save)
    stop = Stop()
    for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop.handle)
    return stop


def training_module() -> Any:
    """Return the module of fairseq's training. It is `__main__` under `python -m fairseq_cli.train`."""
    from fairseq_cli import train  # imports the tasks

    main = sys.modules["__main__"]
    return main if hasattr(main, "validate_and_save") else train


def _then_stop(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def validate_and_save(cfg: Any, trainer: Any, task: Any, epoch_itr: Any, *others: Any) -> Any:
        losses, ended = function(cfg, trainer, task, epoch_itr, *others)
        stop = getattr(task, "stop", None)
        if ended or stop is None or not stop.agreed:
            return losses, ended
        for number in SIGNALS:  # torchrun sends one to the processes that end later than the first
            signal.signal(number, signal.SIG_IGN)
        checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, losses[0])
        if distributed.is_initialized():  # the others wait until the checkpoint is written
            distributed.barrier(distributed_utils.get_global_group())
        if cfg.distributed_training.device_id == 0:  # a line in the log of each node
            logger.warning(f"stopped by a signal after update {trainer.get_num_updates()}; the same command goes on")
        raise SystemExit(STATUS)

    return validate_and_save
