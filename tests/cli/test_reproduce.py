"""The signals of `fairseq-capsule reproduce`."""

import os
import signal
import sys

import pytest

from fairseq_capsule.cli.reproduce import _supervised

HANG_UP = f"import os; os.kill({os.getpid()}, 1)"


@pytest.fixture
def hang_up():
    """Set the reaction to a hang-up. The former one is restored after the test."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda handler: signal.signal(signal.SIGHUP, handler)
    signal.signal(signal.SIGHUP, before)


def test_a_hang_up_that_nohup_ignores_does_not_end_the_jobs(hang_up):
    hang_up(signal.SIG_IGN)
    try:
        assert not _supervised([sys.executable, "-c", HANG_UP], here=True)
    except KeyboardInterrupt:
        pytest.fail("interrupted")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_hang_up_ends_the_jobs(hang_up):
    hang_up(signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt):
        _supervised([sys.executable, "-c", f"import time; {HANG_UP}; time.sleep(60)"], here=True)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
