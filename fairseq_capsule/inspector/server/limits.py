"""How much the server does: one piece of work at a time, a bounded queue, and a rate for each address."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Tuple

from fairseq_capsule.inspector.server.bodies import Refusal

MOST_ADDRESSES = 10_000  # whose rates are remembered
CLOSED = 499  # what other servers log for a client that has gone; nobody reads the answer


class Queue:
    """Runs functions one after the other, in the order of the calls, in a thread of their own.

    Args:
        length: how many may wait besides the one that runs.
    """

    def __init__(self, length: int):
        self._length = length
        self._inside = 0
        self._turn = asyncio.Lock()  # its waiters are served in their order
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="translate")

    async def run(self, gone: Callable[[], Awaitable[bool]], function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's result, when its turn has come.

        Args:
            gone: whether the client has hung up, asked when the turn has come; then nothing is run.

        Raises:
            Refusal: 503, the queue is full.
        """
        if self._inside > self._length:
            raise Refusal(
                503, f"{self._inside - 1} requests are waiting already; try again in a moment", {"Retry-After": "1"}
            )
        self._inside += 1
        try:
            async with self._turn:
                if await gone():
                    raise Refusal(CLOSED, "the client has hung up")
                # A cancelled request must not let the next one in while its work still runs in the thread.
                return await _finished(asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments))
        finally:
            self._inside -= 1


async def _finished(work: "asyncio.Future[Any]") -> Any:
    """Wait for work until it has ended, also when the one who waits is cancelled meanwhile."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


class Rate:
    """At most so many requests a minute from an address: a bucket of tokens that fills evenly.

    Args:
        per_minute: both the size of the bucket and what flows into it in a minute.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic):
        self._most = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, Tuple[float, float]] = OrderedDict()  # address → tokens, when

    def take(self, address: str) -> None:
        """Count a request.

        Raises:
            Refusal: 429, with the seconds to wait.
        """
        now = self._clock()
        tokens, when = self._buckets.pop(address, (float(self._most), now))
        tokens = min(self._most, tokens + (now - when) * self._most / 60)
        enough = tokens >= 1
        self._buckets[address] = (tokens - enough, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)  # the one that asked longest ago
        if not enough:
            wait = math.ceil((1 - tokens) * 60 / self._most)
            raise Refusal(
                429, f"more than {self._most} requests a minute; try again in {wait} s", {"Retry-After": str(wait)}
            )
