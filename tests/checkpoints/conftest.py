import contextlib
import sys

import pytest

from tests.checkpoints.ways_in import Place

STARTS = {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "urllib.Request"}
watched = []


def watch(event, arguments):
    """Record audit events while a test watches. An audit hook cannot be removed."""
    if watched:
        watched[-1].add(event)


sys.addaudithook(watch)


@pytest.fixture(scope="session")
def nothing_starts():
    """Check that no process starts and no connection is opened."""

    @contextlib.contextmanager
    def guarded():
        watched.append(set())
        try:
            yield
        finally:
            events = watched.pop()
        assert not STARTS & events

    return guarded


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("place"))
