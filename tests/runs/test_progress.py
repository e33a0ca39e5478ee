"""The time left of a training, and a warm-up that is longer than it."""

from itertools import count

import pytest

from fairseq_capsule_lab.runs.progress import Progress

EPOCH = b"[2026-01-01 00:00:00,000][fairseq.data.iterators][INFO] - grouped total_num_itrs = 50"


def inner(update):
    place = f"epoch 001:  {update:5d} / 50 loss=7.1, num_updates={update}, lr=0.001"
    return f"[2026-01-01 00:00:00,000][train_inner][INFO] - {place}".encode()


def valid(update):
    return f"[2026-01-01 00:00:00,000][valid][INFO] - epoch 001 | loss 7.1 | num_updates {update} | x 2".encode()


@pytest.mark.parametrize("limits, left", [((0, 4), 175), ((120, 4), 95), ((120, 0), 95), ((10000, 0), 9975)])
def test_the_time_left_follows_the_nearer_limit(limits, left):
    """A line each minute, 10 and then 15 updates later."""
    progress = Progress(*limits, warmup=5, clock=count(step=60).__next__)
    assert [progress.remark(line) for line in (EPOCH, inner(10))] == ["", ""]
    minutes = round(left / 15)
    expected = f" (about {minutes} min left)" if minutes < 120 else f" (about {round(minutes / 60)} h left)"
    assert progress.remark(valid(25)) == expected
    assert progress.remark(b"[2026-01-01 00:00:00,000][fairseq.trainer][INFO] - begin training epoch 2") == ""


def test_nothing_is_left_at_the_end_or_known_without_a_limit():
    for limits, last in (((0, 1), 50), ((0, 0), 30)):
        progress = Progress(*limits, warmup=5, clock=count(step=60).__next__)
        assert [progress.remark(line) for line in (EPOCH, inner(10), valid(last))] == ["", "", ""]


@pytest.mark.parametrize("warmup, warns", [(199, False), (200, True), (4000, True)])
def test_a_warmup_that_does_not_end_is_said_once(warmup, warns):
    progress = Progress(0, 4, warmup)
    first, second = progress.remark(EPOCH), progress.remark(EPOCH)
    message = (
        f"warning: lr_scheduler.warmup_updates={warmup} is not below the 200 updates of this training; the learning"
    )
    assert first.startswith(message) if warns else first == ""
    assert second == ""
