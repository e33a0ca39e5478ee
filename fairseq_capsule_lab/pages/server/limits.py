"""Limits of the server: one task at a time, a bounded queue, and a rate for each address."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Tuple

from fairseq_capsule_lab.pages.server.bodies import Refusal

MOST_ADDRESSES = 10_000  # addresses with a stored rate
CLOSED = 499  # the status that other servers log if the client has disconnected


class Queue:
    """Runs functions one by one, in the order of the calls, in a separate thread.

    Args:
        length: the maximum number of waiting calls, without the running one.
    """

    def __init__(self, length: int):
        self._length = length
        self._inside = 0
        self._turn = asyncio.Lock()  # first come, first served
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="translate")

    async def run(self, gone: Callable[[], Awaitable[bool]], function: Callable[..., Any], *arguments: Any) -> Any:
        """Wait for the earlier calls, then call the function and return its result.

        Args:
            gone: tells whether the client has disconnected. It is called after the wait. If it is true, the function
                is not called.

        Raises:
            Refusal: 503 if the queue is full, 499 if the client has disconnected.
        """
        if self._inside > self._length:
            raise Refusal(
                503, f"{self._inside - 1} requests are already waiting; try again in a moment", {"Retry-After": "1"}
            )
        self._inside += 1
        try:
            async with self._turn:
                if await gone():
                    raise Refusal(CLOSED, "the client has disconnected")
                # After a request is cancelled, the next one must wait until the thread has finished the work.
                return await _finished(asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments))
        finally:
            self._inside -= 1


async def _finished(work: "asyncio.Future[Any]") -> Any:
    """Wait until the work has ended, even if the waiting task is cancelled."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


class Rate:
    """A limit of requests per minute for each address: a token bucket.

    Args:
        per_minute: the size of the bucket, and the tokens that are added in a minute.
        clock: returns the time in seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic):
        self._most = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, Tuple[float, float]] = OrderedDict()  # address → (tokens, time)

    def take(self, address: str) -> None:
        """Count a request.

        Raises:
            Refusal: 429 if there are too many requests. `Retry-After` has the seconds to wait.
        """
        now = self._clock()
        tokens, when = self._buckets.pop(address, (float(self._most), now))
        tokens = min(self._most, tokens + (now - when) * self._most / 60)
        enough = tokens >= 1
        self._buckets[address] = (tokens - enough, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)  # the address with the oldest last request
        if not enough:
            wait = math.ceil((1 - tokens) * 60 / self._most)
            raise Refusal(
                429, f"more than {self._most} requests a minute; try again in {wait} s", {"Retry-After": str(wait)}
            )
