"""The signals of `fairseq-capsule reproduce`, and what its dry run leaves."""

import contextlib
import fcntl
import os
import signal
import sys

import pytest

from fairseq_capsule_lab.cli.reproduce import _no_trace, _supervised

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


def test_a_dry_run_removes_only_what_it_made(tmp_path):
    runs = tmp_path / "new" / "runs"
    with _no_trace(runs):
        (runs / ".snakemake" / "log").mkdir(parents=True)
    assert not list(tmp_path.iterdir())
    runs.mkdir(parents=True)
    with _no_trace(runs):
        (runs / ".snakemake" / "log").mkdir(parents=True)
    assert runs.exists() and not list(runs.iterdir())


@pytest.mark.parametrize("exists", [False, True])
def test_a_dry_run_keeps_a_run_that_was_started_meanwhile(tmp_path, exists):
    runs = tmp_path / "new" / "runs"
    if exists:
        runs.mkdir(parents=True)
    with contextlib.ExitStack() as stack, _no_trace(runs):
        (runs / ".snakemake").mkdir()
        fcntl.flock(stack.enter_context(open(runs / ".lock", "w")), fcntl.LOCK_EX)
    assert sorted(path.name for path in runs.iterdir()) == [".lock", ".snakemake"]


def test_a_dry_run_keeps_the_results_of_a_run_that_ended_meanwhile(tmp_path):
    with _no_trace(tmp_path / "runs"):
        for name in (".snakemake", "small"):
            (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / ".lock").touch()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["small"]
