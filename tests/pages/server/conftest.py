"""A server with a tiny model, on a free port and in a thread of the test process."""

import http.client
import json
import shutil
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from omegaconf import open_dict

from tests.libraries import library

library("starlette")
uvicorn = library("uvicorn")

from fairseq_capsule.hub import load  # noqa: E402
from fairseq_capsule_lab.pages.server.application import application  # noqa: E402
from fairseq_capsule_lab.pages.server.translator import Translator  # noqa: E402
from tests.cli.world import make_world  # noqa: E402


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A checkpoint and its data."""
    folder = tmp_path_factory.mktemp("served")
    make_world(folder)
    return folder / "model.pt", folder / "data/bin"


@pytest.fixture(scope="session")
def translator(model):
    """A translator that compares a model with itself. The length is limited: an untrained model does not stop."""
    checkpoint, data = model
    hubs = [load(checkpoint, data), load(shutil.copy(checkpoint, checkpoint.with_name("other.pt")), data)]
    for hub in hubs:
        with open_dict(hub.cfg):
            hub.cfg.generation.max_len_b = 6
    return Translator(*hubs, beam=3, longest=30)


@contextmanager
def serving(translator, waiting=64, per_minute=1_000_000, names=frozenset()):
    app = application(translator, names, waiting, per_minute)
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none", http="h11")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Client(port)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


class Client:
    def __init__(self, port):
        self.port = port
        self.host = f"127.0.0.1:{port}"

    def ask(self, method, path, body=None, headers=None):
        """Send a request on a new connection. Return status, headers, body, and the JSON object if there is one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = response.headers["content-type"] == "application/json"
        return SimpleNamespace(
            status=response.status,
            headers=response.headers,
            body=content,
            json=json.loads(content) if is_json else None,
        )

    def post(self, path, body, **headers):
        body = body if isinstance(body, (bytes, list)) else json.dumps(body).encode()
        return self.ask("POST", path, body, {"Content-Type": "application/json", **headers})

    def translate(self, text, **fields):
        return self.post("/translate", {"text": text, **fields})


@pytest.fixture(scope="module")
def server(translator):
    with serving(translator) as client:
        yield client
