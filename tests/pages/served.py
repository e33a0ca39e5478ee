"""A server with tiny models, on a free port and in a thread of the test process."""

import threading
from contextlib import contextmanager

from omegaconf import open_dict

from fairseq_capsule.hub import load
from fairseq_capsule_lab.pages.server import Server, Translator
from tests.cli.world import make_world


def make_translator(folder):
    """Three models: one, the same again, and a plain one. The length is limited: an untrained model does not stop."""
    make_world(folder)
    hubs = [load(folder / name, folder / "data/bin") for name in ("model.pt", "model.pt", "plain.pt")]
    for hub in hubs:
        with open_dict(hub.cfg):
            hub.cfg.generation.max_len_b = 6
    return Translator(hubs, beam=3)


@contextmanager
def serving(translator):
    """Serve, and yield the address."""
    with Server(0) as server:
        server.translator = translator
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.address
        finally:
            server.shutdown()
            thread.join(30)
