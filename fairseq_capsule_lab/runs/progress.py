"""How long a training takes, from the lines of its log: the time left, and a warm-up that does not end."""

import re
import time
from collections.abc import Callable

_UPDATES_OF_EPOCH = re.compile(rb"grouped total_num_itrs = (\d+)")
_UPDATES = re.compile(rb"\]\[(?:train_inner|valid)\]\[INFO\] - .*\bnum_updates[ =](\d+)")


class Progress:
    """The progress of one start of a training. A limit of 0 is none."""

    def __init__(self, max_update: int, max_epoch: int, warmup: int, clock: Callable[[], float] = time.monotonic):
        self.max_update, self.max_epoch, self.warmup, self.clock = max_update, max_epoch, warmup, clock
        self.total = 0  # updates, as far as it is known
        self.first: tuple[float, int] | None = None  # the time of an update, and its number

    def remark(self, line: bytes) -> str:
        """Read a line of the log. Return what to print with it: nothing, or a remark."""
        of_epoch = _UPDATES_OF_EPOCH.search(line)
        if of_epoch:
            return self._note_total(int(of_epoch[1]))
        updates = _UPDATES.search(line)
        return self._time_left(int(updates[1])) if updates else ""

    def _note_total(self, of_epoch: int) -> str:
        known, limits = self.total, (self.max_update, self.max_epoch * of_epoch)
        self.total = min((limit for limit in limits if limit > 0), default=0)
        if known or not 0 < self.total <= self.warmup:
            return ""
        problem = f"lr_scheduler.warmup_updates={self.warmup} is not below the {self.total} updates of this training"
        return f"warning: {problem}; the learning rate never reaches optimization.lr"

    def _time_left(self, update: int) -> str:
        now = self.clock()
        if self.first is None or self.total <= update or update <= self.first[1]:
            self.first = self.first or (now, update)
            return ""
        seconds = (self.total - update) * (now - self.first[0]) / (update - self.first[1])
        minutes = max(1, round(seconds / 60))
        return f" (about {minutes} min left)" if minutes < 120 else f" (about {round(minutes / 60)} h left)"
