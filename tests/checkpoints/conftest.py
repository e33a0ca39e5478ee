import contextlib
import sys

import pytest

from tests.checkpoints.ways_in import Place

watched = []


def watch(event, arguments):
    """An audit hook stays for ever; it notes what happens while somebody watches."""
    if watched and event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"):
        watched[-1].append((event, arguments))


sys.addaudithook(watch)


@pytest.fixture
def nothing_starts():
    """No process is started, and nothing connects to anywhere."""

    @contextlib.contextmanager
    def watching():
        events = []
        watched.append(events)
        try:
            yield
        finally:
            watched.pop()
        assert not events

    return watching


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("place"))
