import contextlib
import sys

import pytest

from tests.checkpoints.ways_in import Place

STARTS = {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "urllib.Request"}
watched = []


def watch(event, arguments):
    """Record audit events while a test watches. An audit hook cannot be removed."""
    if watched:
        watched[-1].append(event)


@contextlib.contextmanager
def watching():
    events = []
    watched.append(events)
    try:
        yield events
    finally:
        watched.pop()


sys.addaudithook(watch)


@pytest.fixture(scope="session")
def nothing_starts():
    """Check that no process starts and no connection is opened."""

    @contextlib.contextmanager
    def guarded():
        with watching() as events:
            yield
        assert not STARTS.intersection(events)

    return guarded


@pytest.fixture(scope="session")
def audited():
    """The audit events of a block of code: files, processes, connections, imports."""
    return watching


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("place"))
