"""The queue and the rate limit, without a server."""

import asyncio
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_capsule_lab.pages.server.limits import MOST_ADDRESSES, Queue, Rate
from fairseq_capsule_lab.pages.server.requests import Refusal


async def there():
    return False


async def gone():
    return True


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 5))
def test_calls_run_one_by_one_in_order_up_to_the_length(pauses, length):
    running, done = [], []

    def work(number, pause):
        assert not running
        running.append(number)
        time.sleep(pause / 2000)
        running.remove(number)
        done.append(number)

    async def all_at_once():
        queue = Queue(length)
        tasks = (queue.run(there, work, number, pause) for number, pause in enumerate(pauses))
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(all_at_once())
    accepted = min(len(pauses), length + 1)
    assert done == list(range(accepted))
    assert [type(result) for result in results] == [type(None)] * accepted + [Refusal] * (len(pauses) - accepted)
    assert all(result.status == 503 and "Retry-After" in result.headers for result in results[accepted:])


def test_an_error_does_not_block_the_queue():
    async def two():
        queue = Queue(0)
        with pytest.raises(ZeroDivisionError):
            await queue.run(there, lambda: 1 / 0)
        return await queue.run(there, lambda: 2)

    assert asyncio.run(two()) == 2


def test_requests_of_disconnected_clients_are_skipped():
    async def one():
        with pytest.raises(Refusal):
            await Queue(0).run(gone, lambda: pytest.fail("it ran"))

    asyncio.run(one())


def test_a_cancelled_request_blocks_the_queue_until_its_work_ends():
    ending = threading.Event()
    order = []

    async def cancelled():
        queue = Queue(1)
        first = asyncio.create_task(queue.run(there, lambda: (ending.wait(5), order.append("first"))))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(queue.run(there, lambda: order.append("second")))
        first.cancel()
        await asyncio.sleep(0.05)
        assert order == []
        ending.set()
        await second
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(cancelled())
    assert order == ["first", "second"]


def test_an_address_is_limited_to_its_rate():
    now = 0.0
    rate = Rate(4, lambda: now)
    for _ in range(4):
        rate.take("a")
    with pytest.raises(Refusal, match="more than 4 requests a minute; try again in 15 s") as refused:
        rate.take("a")
    assert refused.value.status == 429 and refused.value.headers == {"Retry-After": "15"}
    rate.take("b")
    now = 15.0
    rate.take("a")
    with pytest.raises(Refusal):
        rate.take("a")


def test_old_addresses_are_dropped():
    rate = Rate(1, lambda: 0.0)
    for number in range(MOST_ADDRESSES + 5):
        rate.take(str(number))
    assert len(rate._buckets) == MOST_ADDRESSES
